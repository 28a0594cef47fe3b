//! The value model: a tree that can only hold what RFC 8785 can write.

use std::cmp::Ordering;

use super::pointer;

/// Any JSON value.
///
/// `Debug` prints the content, which may be secret: it is for tests, never for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A finite IEEE 754 double.
    Number(Number),
    /// Any sequence of Unicode scalar values, not normalised.
    String(String),
    /// Values in order.
    Array(Vec<Value>),
    /// Members with unique keys, in canonical order.
    Object(Object),
}

impl Value {
    /// The text, when this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The members, when this is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(object) = self {
            Some(object)
        } else {
            None
        }
    }

    /// The members for editing, when this is an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        if let Self::Object(object) = self {
            Some(object)
        } else {
            None
        }
    }

    /// The items, when this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Self::Array(items) = self {
            Some(items)
        } else {
            None
        }
    }

    /// The number, when this is a whole one in 0..=2^53.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Number(number) = self {
            number.as_u64()
        } else {
            None
        }
    }

    /// The truth value, when this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self {
            Some(*truth)
        } else {
            None
        }
    }

    /// The member `key`, when this is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The value an RFC 6901 pointer names; the empty pointer is the whole value. `None` when the pointer is
    /// malformed or names nothing.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer
            .strip_prefix('/')?
            .split('/')
            .try_fold(self, |place, token| match place {
                Self::Object(object) => object.get(&pointer::unescape(token)?),
                Self::Array(items) => items.get(pointer::index(token)?),
                _ => None,
            })
    }

    /// What kind of value this is, for an error text that must not show the value.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

/// A finite IEEE 754 double; minus zero is held as zero, for both are written `0` (RFC 8785 §3.2.2.3).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Number(f64);

// INVARIANT: never NaN (the constructors admit finite doubles only), so equality is total.
impl Eq for Number {}

impl Number {
    /// The number, unless it is NaN or infinite.
    #[must_use]
    pub fn from_f64(double: f64) -> Option<Self> {
        // Adding zero turns -0.0 into 0.0 and changes nothing else.
        double.is_finite().then_some(Self(double + 0.0))
    }

    /// The number, when it is at most 2^53 and so exact in a double and in every reader.
    #[must_use]
    pub fn from_u64(whole: u64) -> Option<Self> {
        (whole <= SAFE).then_some(Self(whole as f64))
    }

    /// The number, when it is within ±2^53.
    #[must_use]
    pub fn from_i64(whole: i64) -> Option<Self> {
        (whole.unsigned_abs() <= SAFE).then_some(Self(whole as f64))
    }

    /// The double itself.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// The whole number in 0..=2^53 this is.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        self.as_i64().and_then(|whole| u64::try_from(whole).ok())
    }

    /// The whole number in -2^53..=2^53 this is.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        (self.0.fract() == 0.0 && self.0.abs() <= SAFE as f64).then_some(self.0 as i64)
    }
}

/// The members of a JSON object: unique keys, always in the order RFC 8785 §3.2.3 writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    /// An object without members.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The object with these members, in any order.
    ///
    /// # Errors
    /// The key that occurs twice.
    pub fn from_members(mut members: Vec<(String, Value)>) -> Result<Self, String> {
        if !members.is_sorted_by(|(one, _), (other, _)| utf16_cmp(one, other).is_lt()) {
            members.sort_by(|(one, _), (other, _)| utf16_cmp(one, other));
            if let Some([(key, _), _]) = members
                .array_windows()
                .find(|[(one, _), (other, _)]| one == other)
            {
                return Err(key.clone());
            }
        }
        Ok(Self(members))
    }

    /// The object with these members. The caller vouches for the order and that keys are unique.
    pub(super) fn from_sorted(members: Vec<(String, Value)>) -> Self {
        debug_assert!(members.is_sorted_by(|(one, _), (other, _)| utf16_cmp(one, other).is_lt()));
        Self(members)
    }

    /// The value of the member `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.find(key)
            .ok()
            .and_then(|at| self.0.get(at))
            .map(|(_, value)| value)
    }

    /// The value of the member `key`, for editing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.find(key)
            .ok()
            .and_then(|at| self.0.get_mut(at))
            .map(|(_, value)| value)
    }

    /// Whether there is a member `key`.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// The members in canonical order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + DoubleEndedIterator {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the member `key` and gives back the value it replaced. Linear in the number of members; to build a wide
    /// object use [`Object::from_members`].
    pub fn insert(&mut self, key: String, value: Value) -> Option<Value> {
        match self.find(&key) {
            Ok(at) => self
                .0
                .get_mut(at)
                .map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Takes the member `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.find(key).ok().map(|at| self.0.remove(at).1)
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(held, _)| utf16_cmp(held, key))
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Compares two texts by their UTF-16 code units, the order of RFC 8785 §3.2.3.
pub(super) fn utf16_cmp(one: &str, other: &str) -> Ordering {
    // UTF-8 sorts by code point. UTF-16 differs in one way only: what needs a surrogate pair (first byte F0 and up)
    // sorts before U+E000..U+FFFF (first byte EE or EF). Bytes after the first differ only under an equal first byte.
    let rank = |byte: u8| {
        if matches!(byte, 0xEE | 0xEF) {
            byte + 0x10
        } else {
            byte
        }
    };
    let differing = one.bytes().zip(other.bytes()).find(|(a, b)| a != b);
    differing.map_or_else(
        || one.len().cmp(&other.len()),
        |(a, b)| rank(a).cmp(&rank(b)),
    )
}

/// The largest whole number this crate takes: 2^53, beyond which doubles skip.
const SAFE: u64 = 1 << 53;
