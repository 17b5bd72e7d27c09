//! Takes a setting back: what it said no longer holds.

use crate::model::{Actor, Now, SettingKey};

use super::super::{Condition, Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn delete_setting(
        &mut self,
        now: Now,
        actor: &Actor,
        key: &SettingKey,
        condition: Condition,
    ) -> Answer {
        if self.check_setting(key, condition)?.is_none() {
            return Err(Refusal::NoSuchSetting(key.name));
        }
        self.change_setting(now, actor, key.clone(), None);
        Ok(Reply::Deleted)
    }
}
