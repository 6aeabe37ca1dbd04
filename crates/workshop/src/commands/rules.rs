use super::End;

/// `workshop rules`.
#[derive(Debug, clap::Args)]
pub struct Rules {
    /// Only the rules of one language, such as Python.
    #[arg(long, value_name = "NAME")]
    language: Option<String>,
}

#[cfg(not(feature = "real"))]
impl Rules {
    /// Says how to build it.
    pub fn run(&self) -> Result<End, String> {
        let language = self.language.iter().map(|name| format!(" --language {name}")).collect::<String>();
        let line = "cargo run -p workshop --features real -- rules";
        Err(format!("this build has no reviewer that works, and so no rules; this one has: {line}{language}"))
    }
}

#[cfg(feature = "real")]
impl Rules {
    /// Lists the rules by which a working code-reviewer reads diffs.
    pub fn run(&self) -> Result<End, String> {
        use code_reviewer::real::rules;

        let languages = |rule: &rules::Rule| {
            let mut names: Vec<&str> = rule.languages.iter().map(|language| language.name()).collect();
            names.dedup();
            names
        };
        let wanted = |rule: &&rules::Rule| match &self.language {
            Some(name) => languages(rule).iter().any(|one| one.eq_ignore_ascii_case(name)),
            None => true,
        };
        let rules: Vec<_> = rules::all().iter().filter(wanted).collect();
        if rules.is_empty()
            && let Some(name) = &self.language
        {
            return Err(format!("no rule reads {name}; there are rules for Python, TypeScript, Go and Rust"));
        }
        let longest = rules.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
        for rule in rules {
            let (id, severity) = (rule.id, rule.severity.word());
            println!("{id:longest$}  {severity:6}  {}  ({})", rule.title, languages(rule).join(", "));
        }
        Ok(End::Done)
    }
}
