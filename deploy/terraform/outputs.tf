output "vpc_id" {
  description = "The network."
  value       = local.vpc_id
}

output "subnet_ids" {
  description = "The subnets in which the autoscaler may buy, one for each zone."
  value       = local.subnet_ids
}

output "machine_security_group_id" {
  description = "The security group for the fleet's machines."
  value       = aws_security_group.machine.id
}

output "server_security_group_id" {
  description = "The security group for the server."
  value       = aws_security_group.server.id
}

output "autoscaler_policy_arn" {
  description = "What the autoscaler may do; attach it to whatever runs it, where that isn't the module's server."
  value       = aws_iam_policy.autoscaler.arn
}

output "server_instance_profile" {
  description = "The instance profile with that policy."
  value       = aws_iam_instance_profile.server.name
}

output "server_url" {
  description = "The server's address for the fleet's machines; null without a server."
  value       = var.server == null ? null : "https://${aws_instance.server[0].private_ip}:${var.port}"
}

output "server_public_url" {
  description = "The server's address for people, where allowed_cidrs lets them; null without a server."
  value       = var.server == null ? null : "https://${aws_eip.server[0].public_ip}:${var.port}"
}

output "server_instance_id" {
  description = "The server's machine, for the Session Manager; null without a server."
  value       = var.server == null ? null : aws_instance.server[0].id
}
