//! One connection to Redis, and what its errors mean to a journal.

use crate::journal::JournalError;
use redis::{Connection, ConnectionLike, FromRedisValue, Pipeline, RedisError, Script};

/// A connection. After an error it isn't used again: what was asked may or may not have been done.
pub(super) struct RedisConnection {
    connection: Connection,
}

impl std::fmt::Debug for RedisConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisConnection")
    }
}

impl RedisConnection {
    pub(super) const fn new(connection: Connection) -> Self {
        Self { connection }
    }

    pub(super) fn query<T: FromRedisValue>(
        &mut self,
        command: &redis::Cmd,
    ) -> Result<T, JournalError> {
        Ok(command.query(&mut self.connection)?)
    }

    pub(super) fn query_pipeline<T: FromRedisValue>(
        &mut self,
        pipe: &Pipeline,
    ) -> Result<T, JournalError> {
        Ok(pipe.query(&mut self.connection)?)
    }

    /// Runs a script, which Redis is given where it doesn't know it.
    pub(super) fn run<T: FromRedisValue>(
        &mut self,
        script: &Script,
        keys: &[&str],
        arguments: &[&[u8]],
    ) -> Result<T, JournalError> {
        let mut call = script.prepare_invoke();
        for key in keys {
            call.key(*key);
        }
        for argument in arguments {
            call.arg(*argument);
        }
        Ok(call.invoke(&mut self.connection)?)
    }

    /// Has Redis know a script, so that it can be called in a pipeline.
    pub(super) fn load(&mut self, script: &Script) -> Result<(), JournalError> {
        script.prepare_invoke().load(&mut self.connection)?;
        Ok(())
    }

    pub(super) fn is_open(&self) -> bool {
        self.connection.is_open()
    }
}

impl From<RedisError> for JournalError {
    fn from(error: RedisError) -> Self {
        JournalError::Storage(Box::new(error))
    }
}
