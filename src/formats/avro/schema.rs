//! The schema of a file: Avro's JSON read into nodes that refer to each other by number, since a named type may contain
//! itself.

use std::collections::HashMap;

use serde_json::Value;

use crate::error::{Error, Result};

/// A file's schema.
#[derive(Debug)]
pub(super) struct Schema {
    nodes: Vec<Node>,
    /// The type of a row.
    pub(super) root: usize,
}

/// A type; types within it are numbers of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Null,
    Boolean,
    Int(Logical),
    Long(Logical),
    Float,
    Double,
    Bytes(Logical),
    String,
    Fixed(usize, Logical),
    Enum(Vec<String>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<(String, usize)>),
}

/// What a number or bytes stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logical {
    Plain,
    Date,
    /// With its digits of a second: 3, 6 or 9.
    Time(u8),
    Timestamp(u8),
    Decimal(u8, i8),
}

/// The most types a schema may have.
const MOST_NODES: usize = 100_000;

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// If it is not one.
    pub(super) fn parse(json: &[u8]) -> Result<Schema> {
        let value: Value = serde_json::from_slice(json).map_err(|error| fault(&format!("it is no JSON: {error}")))?;
        let mut parser = Parser { nodes: Vec::new(), names: HashMap::new() };
        let root = parser.node(&value, "")?;
        Ok(Schema { nodes: parser.nodes, root })
    }

    pub(super) fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    /// The type as a message shows it.
    pub(super) fn describe(&self, number: usize) -> String {
        match self.node(number) {
            Node::Null => "null".to_string(),
            Node::Boolean => "boolean".to_string(),
            Node::Int(Logical::Plain) => "int".to_string(),
            Node::Long(Logical::Plain) => "long".to_string(),
            Node::Float => "float".to_string(),
            Node::Double => "double".to_string(),
            Node::Bytes(Logical::Plain) => "bytes".to_string(),
            Node::String => "string".to_string(),
            Node::Fixed(length, Logical::Plain) => format!("fixed({length})"),
            Node::Int(logical) | Node::Long(logical) | Node::Bytes(logical) | Node::Fixed(_, logical) => {
                match logical {
                    Logical::Plain => "bytes".to_string(),
                    Logical::Date => "date".to_string(),
                    Logical::Time(digits) => format!("time({digits})"),
                    Logical::Timestamp(digits) => format!("timestamp({digits})"),
                    Logical::Decimal(precision, scale) => format!("decimal({precision}, {scale})"),
                }
            }
            Node::Enum(_) => "enum".to_string(),
            Node::Array(_) => "array".to_string(),
            Node::Map(_) => "map".to_string(),
            Node::Record(_) => "record".to_string(),
            Node::Union(branches) => {
                let names: Vec<String> = branches
                    .iter()
                    .map(|branch| match self.node(*branch) {
                        Node::Union(_) => "union".to_string(),
                        _ => self.describe(*branch),
                    })
                    .collect();
                format!("union of {}", names.join(" and "))
            }
        }
    }
}

struct Parser {
    nodes: Vec<Node>,
    names: HashMap<String, usize>,
}

fn fault(what: &str) -> Error {
    Error::data(format!("the file's Avro schema cannot be read: {what}"))
}

impl Parser {
    fn add(&mut self, node: Node) -> Result<usize> {
        if self.nodes.len() == MOST_NODES {
            return Err(fault(&format!("it has more than {MOST_NODES} types")));
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    /// The node of a schema that stands in `namespace`. The JSON reader has bounded how deep it nests.
    fn node(&mut self, value: &Value, namespace: &str) -> Result<usize> {
        match value {
            Value::String(name) => self.by_name(name, namespace),
            Value::Array(branches) => {
                let branches =
                    branches.iter().map(|branch| self.node(branch, namespace)).collect::<Result<Vec<_>>>()?;
                if branches.iter().any(|branch| matches!(self.nodes[*branch], Node::Union(_))) {
                    return Err(fault("a union stands directly in a union"));
                }
                self.add(Node::Union(branches))
            }
            Value::Object(_) => self.object(value, namespace),
            _ => Err(fault(&format!("{value} is no type"))),
        }
    }

    fn by_name(&mut self, name: &str, namespace: &str) -> Result<usize> {
        if let Some(node) = primitive(name, Logical::Plain) {
            return self.add(node);
        }
        let full = full_name(name, namespace);
        let known = self.names.get(&full).or_else(|| self.names.get(name));
        known.copied().ok_or_else(|| fault(&format!("there is no type '{name}'")))
    }

    fn object(&mut self, value: &Value, namespace: &str) -> Result<usize> {
        let kind = match &value["type"] {
            Value::String(kind) => kind.as_str(),
            // `{"type": {…}}` is what is inside.
            inside @ (Value::Object(_) | Value::Array(_)) => return self.node(inside, namespace),
            _ => return Err(fault("a type has no 'type'")),
        };
        match kind {
            "record" | "error" => {
                let (name, space) = self.name(value, namespace)?;
                // Before its fields are read, so that they may be of this very type.
                let number = self.add(Node::Record(Vec::new()))?;
                self.define(name, number)?;
                let Value::Array(declared) = &value["fields"] else { return Err(fault("a record has no 'fields'")) };
                let mut fields: Vec<(String, usize)> = Vec::with_capacity(declared.len());
                let mut seen = std::collections::HashSet::new();
                for field in declared {
                    let Value::String(name) = &field["name"] else { return Err(fault("a field has no 'name'")) };
                    if !seen.insert(name.as_str()) {
                        return Err(fault(&format!("a record has two fields '{name}'")));
                    }
                    fields.push((name.clone(), self.node(&field["type"], &space)?));
                }
                self.nodes[number] = Node::Record(fields);
                Ok(number)
            }
            "enum" => {
                let (name, _) = self.name(value, namespace)?;
                let Value::Array(symbols) = &value["symbols"] else { return Err(fault("an enum has no 'symbols'")) };
                let symbols = symbols
                    .iter()
                    .map(|symbol| symbol.as_str().map(str::to_string).ok_or_else(|| fault("a symbol that is no text")))
                    .collect::<Result<_>>()?;
                let number = self.add(Node::Enum(symbols))?;
                self.define(name, number)?;
                Ok(number)
            }
            "fixed" => {
                let (name, _) = self.name(value, namespace)?;
                let size = value["size"].as_u64().and_then(|size| usize::try_from(size).ok());
                let size = size.ok_or_else(|| fault("a fixed type has no 'size'"))?;
                let logical = decimal(value).unwrap_or(Logical::Plain);
                let number = self.add(Node::Fixed(size, logical))?;
                self.define(name, number)?;
                Ok(number)
            }
            "array" => {
                let items = self.node(&value["items"], namespace)?;
                self.add(Node::Array(items))
            }
            "map" => {
                let values = self.node(&value["values"], namespace)?;
                self.add(Node::Map(values))
            }
            _ => match primitive(kind, logical(kind, value)) {
                Some(node) => self.add(node),
                None => self.by_name(kind, namespace),
            },
        }
    }

    /// The full name of a named type, and the namespace of what stands in it.
    fn name(&self, value: &Value, namespace: &str) -> Result<(String, String)> {
        let Value::String(name) = &value["name"] else { return Err(fault("a named type has no 'name'")) };
        let full = full_name(name, value["namespace"].as_str().unwrap_or(namespace));
        let space = full.rsplit_once('.').map_or("", |(space, _)| space).to_string();
        Ok((full, space))
    }

    fn define(&mut self, name: String, number: usize) -> Result<()> {
        match self.names.insert(name.clone(), number) {
            None => Ok(()),
            Some(_) => Err(fault(&format!("there are two types '{name}'"))),
        }
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_string() } else { format!("{namespace}.{name}") }
}

fn primitive(name: &str, logical: Logical) -> Option<Node> {
    Some(match name {
        "null" => Node::Null,
        "boolean" => Node::Boolean,
        "int" => Node::Int(logical),
        "long" => Node::Long(logical),
        "float" => Node::Float,
        "double" => Node::Double,
        "bytes" => Node::Bytes(logical),
        "string" => Node::String,
        _ => return None,
    })
}

/// The logical type; one that is not known, or does not go with the type under it, counts for nothing, as Avro has it.
fn logical(kind: &str, value: &Value) -> Logical {
    match (kind, value["logicalType"].as_str().unwrap_or_default()) {
        ("int", "date") => Logical::Date,
        ("int", "time-millis") => Logical::Time(3),
        ("long", "time-micros") => Logical::Time(6),
        ("long", "timestamp-millis" | "local-timestamp-millis") => Logical::Timestamp(3),
        ("long", "timestamp-micros" | "local-timestamp-micros") => Logical::Timestamp(6),
        ("long", "timestamp-nanos" | "local-timestamp-nanos") => Logical::Timestamp(9),
        ("bytes", "decimal") => decimal(value).unwrap_or(Logical::Plain),
        _ => Logical::Plain,
    }
}

fn decimal(value: &Value) -> Option<Logical> {
    if value["logicalType"].as_str() != Some("decimal") {
        return None;
    }
    let precision = u8::try_from(value["precision"].as_u64()?).ok()?;
    let scale = i8::try_from(value.get("scale").map_or(Some(0), Value::as_u64)?).ok()?;
    let valid = (1..=38).contains(&precision) && scale.unsigned_abs() <= precision;
    valid.then_some(Logical::Decimal(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_types_may_contain_themselves() {
        let json = br#"{"type":"record","name":"list","namespace":"a.b","fields":[
            {"name":"value","type":{"type":"enum","name":"E","symbols":["X"]}},
            {"name":"again","type":"a.b.E"},
            {"name":"next","type":["null","list"]}]}"#;
        let schema = Schema::parse(json).unwrap();
        let Node::Record(fields) = schema.node(schema.root) else { panic!("a record") };
        assert_eq!(fields[0].1, fields[1].1);
        let Node::Union(branches) = schema.node(fields[2].1) else { panic!("a union") };
        assert_eq!(branches[1], schema.root);
    }

    #[test]
    fn faults_are_told() {
        for (json, expected) in [
            ("{", "no JSON"),
            ("\"nothing\"", "no type 'nothing'"),
            ("{\"type\":\"record\",\"name\":\"r\"}", "no 'fields'"),
            ("[[\"null\"]]", "a union stands directly in a union"),
            ("{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}", "no 'size'"),
            ("3", "3 is no type"),
        ] {
            let error = Schema::parse(json.as_bytes()).unwrap_err();
            assert!(error.message().contains(expected), "{error}");
        }
        let deep = format!("{}\"int\"{}", "{\"type\":\"array\",\"items\":".repeat(500), "}".repeat(500));
        assert!(Schema::parse(deep.as_bytes()).is_err());
    }
}
