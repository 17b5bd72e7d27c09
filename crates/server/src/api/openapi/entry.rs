//! One operation of the document, put together step by step; what its door and its method imply is added at the end.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::parameters;
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::problem;
use crate::auth::{Door, Verb, Who, role_name};

/// What an operation is about.
#[derive(Clone, Copy)]
pub enum Tag {
    Jobs,
    Schedules,
    Calendars,
    Queues,
    Runs,
    Workers,
    Locks,
    Tokens,
    System,
}

impl Tag {
    const ALL: [Self; 9] = [
        Self::Jobs,
        Self::Schedules,
        Self::Calendars,
        Self::Queues,
        Self::Runs,
        Self::Workers,
        Self::Locks,
        Self::Tokens,
        Self::System,
    ];

    fn parts(self) -> (&'static str, &'static str) {
        match self {
            Self::Jobs => ("jobs", "What is to be run, and when."),
            Self::Schedules => ("schedules", "When jobs are due, and what became of it."),
            Self::Calendars => ("calendars", "Sets of days that schedules share."),
            Self::Queues => ("queues", "Limits that jobs share."),
            Self::Runs => ("runs", "One execution of a job each."),
            Self::Workers => ("workers", "Who executes runs."),
            Self::Locks => ("locks", "What only one may do at a time."),
            Self::Tokens => ("tokens", "Who may call."),
            Self::System => ("system", "The server itself."),
        }
    }

    pub fn all() -> Vec<Value> {
        let tag = |(name, text)| json!({"name": name, "description": text});
        Self::ALL.map(Self::parts).into_iter().map(tag).collect()
    }
}

pub struct Entry {
    operation: Map<String, Value>,
    parameters: Vec<Value>,
    answers: BTreeMap<u16, Value>,
    kinds: BTreeSet<Kind>,
    /// Whether a GET answers all at once, and so has an ETag.
    whole: bool,
}

impl Entry {
    pub fn new(id: &str, tag: Tag, summary: &str) -> Self {
        let mut operation = Map::new();
        operation.insert("operationId".to_owned(), json!(id));
        operation.insert("tags".to_owned(), json!([tag.parts().0]));
        operation.insert("summary".to_owned(), json!(summary));
        Self {
            operation,
            parameters: Vec::new(),
            answers: BTreeMap::new(),
            kinds: BTreeSet::new(),
            whole: true,
        }
    }

    pub fn text(mut self, markdown: &str) -> Self {
        self.operation
            .insert("description".to_owned(), json!(markdown));
        self
    }

    pub fn takes(mut self, parameters: impl IntoIterator<Item = Value>) -> Self {
        for parameter in parameters {
            if parameter["in"] == "header" {
                self.kinds.insert(Kind::InvalidHeader);
            }
            self.parameters.push(parameter);
        }
        self
    }

    pub fn body(self, schema: Value, example: Value) -> Self {
        self.body_as(&["application/json"], true, schema, example)
    }

    /// A body that may be empty.
    pub fn optional_body(self, schema: Value, example: Value) -> Self {
        self.body_as(&["application/json"], false, schema, example)
    }

    pub fn body_as(
        mut self,
        types: &[&str],
        required: bool,
        schema: Value,
        example: Value,
    ) -> Self {
        let content = json!({"schema": schema, "examples": {"plain": {"value": example}}});
        let content: Map<String, Value> = types
            .iter()
            .map(|kind| ((*kind).to_owned(), content.clone()))
            .collect();
        self.operation.insert(
            "requestBody".to_owned(),
            json!({"required": required, "content": content}),
        );
        self.refuses(&[
            Kind::MalformedJson,
            Kind::UnknownField,
            Kind::InvalidField,
            Kind::TooLarge,
            Kind::UnsupportedMediaType,
        ])
    }

    /// An answer in JSON.
    pub fn answers<T: JsonSchema>(self, schemas: &mut Schemas, status: u16, what: &str) -> Self {
        let schema = schemas.answer::<T>();
        self.answers_as(status, what, "application/json", schema)
    }

    pub fn answers_as(mut self, status: u16, what: &str, kind: &str, schema: Value) -> Self {
        let answer = self.answers.entry(status).or_insert_with(|| json!({}));
        answer["description"] = json!(what);
        answer["content"][kind] = json!({"schema": schema});
        self
    }

    /// An answer without a body.
    pub fn answers_nothing(mut self, status: u16, what: &str) -> Self {
        self.answers.insert(status, json!({"description": what}));
        self
    }

    /// The successful answers have the ETag that `If-Match` takes.
    pub fn tagged(mut self) -> Self {
        for (_, answer) in self.answers.range_mut(200..300) {
            answer["headers"]["ETag"] = etag();
        }
        self
    }

    /// An example of the answer.
    pub fn like(mut self, status: u16, example: Value) -> Self {
        if let Some(answer) = self.answers.get_mut(&status) {
            answer["content"]["application/json"]["examples"] =
                json!({"plain": {"value": example}});
        }
        self
    }

    /// Where a caller can go on from the answers: parameters of `operation`, each with an expression.
    pub fn leads_to(mut self, operation: &str, parameters: &[(&str, &str)]) -> Self {
        let parameters: Map<String, Value> = parameters
            .iter()
            .map(|(name, expression)| ((*name).to_owned(), json!(expression)))
            .collect();
        for (_, answer) in self.answers.range_mut(200..300) {
            answer["links"][operation] =
                json!({"operationId": operation, "parameters": parameters});
        }
        self
    }

    pub fn refuses(mut self, kinds: &[Kind]) -> Self {
        self.kinds.extend(kinds);
        self
    }

    /// The answer comes as it is made, without an ETag.
    pub fn streams(mut self) -> Self {
        self.whole = false;
        self
    }

    pub fn finish(mut self, door: &Door, verb: Verb, path: &str, schemas: &mut Schemas) -> Value {
        let mut parameters = parameters::of_path(path, schemas);
        parameters.append(&mut self.parameters);
        match door.who {
            Who::Anyone => {
                self.operation.insert("security".to_owned(), json!([]));
            }
            Who::Roles(roles) => {
                let names: Vec<&str> = roles.iter().map(|role| role_name(*role)).collect();
                self.operation.insert("x-roles".to_owned(), json!(names));
                self.kinds.extend(GUARDED);
            }
        }
        if verb == Verb::Get {
            if self.whole && door.who != Who::Anyone {
                parameters.push(parameters::if_none_match());
                self = self.tagged().answers_nothing(304, "It is as it was.");
                if let Some(answer) = self.answers.get_mut(&304) {
                    answer["headers"]["ETag"] = etag();
                }
            }
        } else {
            self.kinds.extend(COMMAND);
        }
        self.add_problems(schemas);
        let mut operation = self.operation;
        if !parameters.is_empty() {
            operation.insert("parameters".to_owned(), json!(parameters));
        }
        let answers: Map<String, Value> = self
            .answers
            .into_iter()
            .map(|(status, answer)| (status.to_string(), answer))
            .collect();
        operation.insert("responses".to_owned(), json!(answers));
        Value::Object(operation)
    }

    /// One response for each status, which names the codes that come with it.
    fn add_problems(&mut self, schemas: &mut Schemas) {
        let schema = schemas.answer::<problem::Body<'static>>();
        for kind in &self.kinds {
            let answer = self
                .answers
                .entry(kind.status().as_u16())
                .or_insert_with(|| json!({"description": ""}));
            let before = answer["description"].as_str().unwrap_or_default();
            let between = if before.is_empty() { "" } else { "; " };
            answer["description"] = json!(format!(
                "{before}{between}`{}`: {}",
                kind.code(),
                kind.title()
            ));
            answer["content"]["application/problem+json"] = json!({"schema": schema});
            match kind {
                Kind::Unauthenticated => {
                    answer["headers"]["WWW-Authenticate"] =
                        json!({"required": true, "schema": {"type": "string"}});
                }
                Kind::Overloaded | Kind::NotReady | Kind::Stopping => {
                    answer["headers"]["Retry-After"] =
                        json!({"description": "Seconds.", "schema": {"type": "integer"}});
                }
                _ => {}
            }
        }
    }
}

fn etag() -> Value {
    json!({"required": true, "schema": {"type": "string"}})
}

/// What every operation behind a token may answer.
const GUARDED: [Kind; 9] = [
    Kind::Unauthenticated,
    Kind::Overloaded,
    Kind::ForbiddenRole,
    Kind::ForbiddenNamespace,
    Kind::UnknownParameter,
    Kind::InvalidParameter,
    Kind::StoreFailed,
    Kind::Stopping,
    Kind::Internal,
];

/// What every change may answer.
const COMMAND: [Kind; 5] = [
    Kind::OtherSite,
    Kind::Overloaded,
    Kind::NotReady,
    Kind::Stopping,
    Kind::OutcomeUnknown,
];
