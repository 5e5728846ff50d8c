//! What becomes of rows of one primary key: the clause `ON CONFLICT` of an `INSERT`.

/// Which of several rows of one primary key a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// The last.
    Deduplicate,
    /// The first.
    Nothing,
    /// None: several are an error.
    Error,
}

impl OnConflict {
    /// The word after `ON CONFLICT DO`.
    pub fn word(self) -> &'static str {
        match self {
            OnConflict::Deduplicate => "DEDUPLICATE",
            OnConflict::Nothing => "NOTHING",
            OnConflict::Error => "ERROR",
        }
    }

    /// What the word, in upper case, stands for.
    pub fn from_word(word: &str) -> Option<OnConflict> {
        [OnConflict::Deduplicate, OnConflict::Nothing, OnConflict::Error].into_iter().find(|it| it.word() == word)
    }
}
