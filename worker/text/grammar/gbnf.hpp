/// Reads grammars in GBNF, the notation of llama.cpp's grammars (its grammars/README):
///
///   # a comment, to the end of the line
///   root   ::= item ("," " "? item){0,9}
///   item   ::= "text\n" | [a-zA-Z_] [^"\\\x00-\x1F]* | . | number
///   number ::= [0-9]+
///
/// A rule is `name ::= alternatives` and ends with its line, except after `::=`, after `|` and
/// within parentheses. Repetitions: * + ? {m} {m,} {m,n}. Escapes, each a code point: \\ \n \r \t
/// \" \[ \] \- and in hex \xHH \uHHHH \UHHHHHHHH. The text is UTF-8. Matching begins at `root`.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// Adds the rules of `text` to `builder` and returns them by name. Errors: BadRequest with line and
/// column.
Result<std::map<std::string, RuleId>> add_gbnf_rules(std::string_view text,
                                                     GrammarBuilder& builder);

/// Errors: those of add_gbnf_rules and GrammarBuilder::finish.
Result<Grammar> parse_gbnf(std::string_view text);

}  // namespace leasehold
