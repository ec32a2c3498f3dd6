//! The rights of the server's machine: a role with the autoscaler's policy, and the instance profile by which the machine has
//! it. No key lies on any machine.

use super::{
    SiteError,
    account::{Account, Known, Visit, lacks, or_there, settled},
    plan::Part,
};
use crate::errors::{Failure, Meaning};
use aws_sdk_iam::types::Tag;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The name of the autoscaler's policy in the role.
pub(super) const POLICY: &str = "autoscaler";
/// The same file that the Terraform module uses; a test compares it with the calls that are made.
const POLICY_TEXT: &str = include_str!("../../../terraform/autoscaler-policy.json");
/// The trust policy of the role: machines may take it.
const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"ec2.amazonaws.com"}}]}"#;

/// The role.
pub(super) async fn role(
    account: &Account,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), SiteError> {
    let name = account.name_of(&Part::Role);
    known.role = find(account, &name).await?;
    if known.role.is_none() && visit.missing() {
        let request = account.iam.create_role().role_name(&name);
        let request = request
            .assume_role_policy_document(TRUST)
            .description(format!("Server and autoscaler of the fleet {}", account.settings.fleet))
            .set_tags(Some(account.iam_tags()));
        let made = request.send().await;
        made.map_err(|error| Failure::of("CreateRole", &error))?;
        known.role = Some(name.clone());
    }
    if known.role.is_none() {
        return Ok(());
    }
    let (partition, id) = identity(account).await?;
    let policy = policy(&partition, &id, &account.settings.fleet);
    if !has_policy(account, &name, &policy).await? && visit.unfinished() {
        let put = settled(async || {
            let request = account.iam.put_role_policy().role_name(&name).policy_name(POLICY);
            let sent = request.policy_document(&policy).send().await;
            sent.map_err(|error| Failure::of("PutRolePolicy", &error))
        });
        put.await?;
    }
    let attached = settled(async || {
        let sent = account.iam.list_attached_role_policies().role_name(&name).send().await;
        sent.map_err(|error| Failure::of("ListAttachedRolePolicies", &error))
    });
    // No port is opened for operators: they come by the cloud's own Session Manager.
    let operators = format!("arn:{partition}:iam::aws:policy/AmazonSSMManagedInstanceCore");
    let attached = attached.await?;
    let mut all = attached.attached_policies().iter();
    if !all.any(|policy| policy.policy_arn() == Some(&operators)) && visit.unfinished() {
        let sent = account.iam.attach_role_policy().role_name(&name).policy_arn(operators).send();
        sent.await.map_err(|error| Failure::of("AttachRolePolicy", &error))?;
    }
    Ok(())
}

/// The instance profile with the role.
pub(super) async fn profile(
    account: &Account,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), SiteError> {
    let name = account.name_of(&Part::Profile);
    let sent = account.iam.get_instance_profile().instance_profile_name(&name).send().await;
    let found = match sent.map_err(|error| Failure::of("GetInstanceProfile", &error)) {
        Ok(answer) => answer.instance_profile,
        Err(failure) if failure.meaning == Meaning::Gone => None,
        Err(failure) => return Err(failure.into()),
    };
    let is_ours = |tags: &[Tag]| account.has_tag(tags);
    if found.as_ref().is_some_and(|profile| !is_ours(profile.tags())) {
        return Err(SiteError::Foreign { kind: "an instance profile", name });
    }
    let mut has_role = false;
    if let Some(profile) = &found {
        known.profile = Some(name.clone());
        has_role = profile.roles().iter().any(|role| role.role_name() == name);
    } else if visit.missing() {
        let request = account.iam.create_instance_profile().instance_profile_name(&name);
        let sent = request.set_tags(Some(account.iam_tags())).send().await;
        sent.map_err(|error| Failure::of("CreateInstanceProfile", &error))?;
        known.profile = Some(name.clone());
    }
    if known.profile.is_some() && !has_role && visit.unfinished() {
        let added = settled(async || {
            let request = account.iam.add_role_to_instance_profile().instance_profile_name(&name);
            let sent = request.role_name(account.name_of(&Part::Role)).send().await;
            sent.map_err(|error| Failure::of("AddRoleToInstanceProfile", &error))
        });
        or_there(added.await)?;
    }
    Ok(())
}

/// The fleet's role, by its name and its tag.
async fn find(account: &Account, name: &str) -> Result<Option<String>, SiteError> {
    let sent = account.iam.get_role().role_name(name).send().await;
    let role = match sent.map_err(|error| Failure::of("GetRole", &error)) {
        Ok(answer) => answer.role,
        Err(failure) if failure.meaning == Meaning::Gone => None,
        Err(failure) => return Err(failure.into()),
    };
    match role {
        Some(role) if !account.has_tag(role.tags()) => {
            Err(SiteError::Foreign { kind: "a role", name: name.to_owned() })
        }
        role => Ok(role.map(|role| role.role_name)),
    }
}

async fn has_policy(account: &Account, role: &str, wanted: &str) -> Result<bool, Failure> {
    let sent = account.iam.get_role_policy().role_name(role).policy_name(POLICY).send().await;
    let found = match sent.map_err(|error| Failure::of("GetRolePolicy", &error)) {
        Ok(answer) => answer.policy_document,
        Err(failure) if failure.meaning == Meaning::Gone => return Ok(false),
        Err(failure) => return Err(failure),
    };
    // IAM encodes it as an address does.
    let text = percent_decode_str(&found).decode_utf8_lossy();
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    Ok(read(&text).is_some() && read(&text) == read(wanted))
}

/// The partition, as `aws`, and the account's id.
async fn identity(account: &Account) -> Result<(String, String), Failure> {
    let sent = account.sts.get_caller_identity().send().await;
    let answer = sent.map_err(|error| Failure::of("GetCallerIdentity", &error))?;
    let partition = answer.arn().and_then(|arn| arn.split(':').nth(1));
    let id = answer.account().ok_or_else(|| lacks("GetCallerIdentity", "account"))?;
    Ok((partition.unwrap_or("aws").to_owned(), id.to_owned()))
}

/// The autoscaler's policy for a fleet of an account.
fn policy(partition: &str, account: &str, fleet: &str) -> String {
    let text = POLICY_TEXT.replace("${partition}", partition);
    text.replace("${account}", account).replace("${fleet}", fleet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_for_one_fleet_of_one_account() {
        let text = policy("aws", "123456789012", "night");
        serde_json::from_str::<Value>(&text).unwrap();
        assert!(!text.contains("${"), "{text}");
        assert!(text.contains("arn:aws:ec2:*:123456789012:instance/*"));
        // What a role may have of policies of its own, without white space.
        assert!(text.split_whitespace().collect::<String>().len() < 10_240);
    }
}
