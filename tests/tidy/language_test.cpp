// The language rules: each must find planted violations, then the tree must pass them.
#include <catch2/catch.hpp>

#include "tests/support/test_paths.hpp"
#include "tests/tidy/check_none.hpp"
#include "tests/tidy/document_rules.hpp"
#include "tests/tidy/vocabulary.hpp"

using namespace leasehold::tidy;
using Catch::Matchers::Contains;

namespace {

const Vocabulary& language() {
  static const Vocabulary vocabulary =
      Vocabulary(read_text(leasehold::source_dir() + "/tests/tidy/language.txt"));
  return vocabulary;
}

/// Sources and texts of this tree.
const Sources& sources_and_texts() {
  static const Sources sources = [] {
    Sources all = read_sources(leasehold::source_dir());
    Sources texts = read_texts(leasehold::source_dir());
    std::ranges::move(texts, std::back_inserter(all));
    return all;
  }();
  return sources;
}

bool is_banned(const std::string& path, const std::string& text) {
  const Sources sources{make_source(path, text)};
  return !language().banned_phrases(comments_of(sources)).empty() ||
         !language().banned_phrases(strings_of(sources)).empty();
}

std::string sentence_of(std::size_t words) {
  std::string text = "A";
  for (std::size_t i = 1; i < words; ++i) text += " word";
  return text + ".";
}

}  // namespace

TEST_CASE("planted: a banned phrase is found in comments, strings, scripts and Markdown") {
  CHECK(is_banned("broker/a.hpp", "/// Whoever asks gets an answer.\n"));
  CHECK(is_banned("broker/a.cpp", "int x;  // nobody reads this\n"));
  CHECK(is_banned("broker/a.cpp", "fail(Errc::BadRequest, \"the lease stands\");\n"));
  CHECK(is_banned("tools/run", "#!/bin/bash\n# It was told to stop.\n"));
  CHECK(is_banned("ipc/README.md", "Two slots, of which one is free.\n"));
  CHECK(is_banned("ipc/README.md", "| a | the worker took it back |\n"));
}

TEST_CASE("planted: a phrase is found across the lines of one comment") {
  CHECK(is_banned("broker/a.hpp", "/// Two slots, of\n/// which one is free.\n"));
}

TEST_CASE("planted: \"is no\" is found, \"there is no\" and \"is no longer\" are fine") {
  CHECK(is_banned("a.hpp", "// Recovery is no standing still.\n"));
  CHECK_FALSE(is_banned("a.hpp", "// There is no lease.\n"));
  CHECK_FALSE(is_banned("a.hpp", "// The lease is no longer live.\n"));
}

TEST_CASE("planted: plain sentences, code and code fences pass") {
  CHECK_FALSE(is_banned("a.hpp", "// The broker revokes the lease.\n"));
  CHECK_FALSE(is_banned("a.cpp", "nobody(whoever);\n"));
  CHECK_FALSE(is_banned("a.md", "```\nwhoever\n```\n"));
}

TEST_CASE(
    "planted: a line of language.txt of another form, or whose pattern does not compile, is "
    "refused") {
  CHECK_THROWS_WITH(Vocabulary("word\n"), Contains("word"));
  CHECK_THROWS_WITH(Vocabulary("(\ty\n"), Contains("does not compile"));
}

TEST_CASE("planted: a sentence of 41 words is too long") {
  const auto findings_in = [](const std::string& text) {
    return sentences_too_long(comments_of({make_source("a.hpp", "// " + text + "\n")}));
  };
  CHECK(findings_in(sentence_of(41)).size() == 1);
  CHECK(findings_in(sentence_of(40)).empty());
  CHECK(findings_in(sentence_of(30) + " " + sentence_of(30)).empty());
}

TEST_CASE("planted: a help line without a capital or with a full stop is found") {
  const auto findings_in = [](const std::string& code) {
    return help_lines_badly_written({make_source("a.cpp", code)});
  };
  CHECK(findings_in("app.add_option(\"--x\", x, \"how many\");\n").size() == 1);
  CHECK(findings_in("app.add_flag(\"--x\", x,\n    \"Wait \"\n    \"longer.\");\n").size() == 1);
  CHECK(findings_in("app.add_subcommand(\"x\", \"lists\");\n").size() == 1);
  CHECK(findings_in("app.add_option(\"--x\", x, \"Number of rows\");\n").empty());
  CHECK(findings_in("app.add_option(\"name\", x);\n").empty());
}

TEST_CASE("planted: a README of more than 900 words is too long") {
  std::string words;
  for (int i = 0; i < 901; ++i) words += "word\n";
  CHECK(readmes_too_long({make_source("ipc/README.md", words)}).size() == 1);
  CHECK(readmes_too_long({make_source("ipc/README.md", words.substr(5))}).empty());
  CHECK(readmes_too_long({make_source("ipc/DECISIONS.md", words)}).empty());
}

TEST_CASE("planted: links to files and headings that are not there are found") {
  const std::string root = leasehold::source_dir();
  const auto findings_in = [&](const std::string& text) {
    return broken_links({make_source("tests/x.md", text)}, root);
  };
  CHECK(findings_in("[a](nowhere.md)\n").size() == 1);
  CHECK(findings_in("# One heading\n[a](#another)\n").size() == 1);
  CHECK(findings_in("# One heading\n[a](#one-heading) [b](tidy/rules.hpp) [c](../README.md)\n")
            .empty());
}

TEST_CASE("planted: a table that names a test which is not there is found") {
  const auto findings_in = [](const std::string& cell) {
    const std::string table = "| then | test |\n| --- | --- |\n| it goes on | " + cell + " |\n";
    return missing_tests(
        {make_source("tests/x.md", table),
         make_source("tests/x_test.cpp",
                     "TEST_CASE(\n    \"a worker that \"\n"
                     "    \"adopts\") {\n"),
         make_source("tests/CMakeLists.txt", "leasehold_test(x_test LABEL unit\n")},
        leasehold::source_dir());
  };
  CHECK(findings_in("`a worker that hangs*`").size() == 1);
  CHECK(findings_in("`a worker that`").size() == 1);
  CHECK(findings_in("`tools/nothing`, `y_test`").size() == 2);
  CHECK(findings_in("by hand").size() == 1);
  CHECK(findings_in("`a worker that a*`, `tools/demo`, `x_test`, `tidy`").empty());
  CHECK(findings_in("[script](tidy/rules.hpp)").empty());
}

TEST_CASE("language: texts and sources were read") {
  CHECK(language().size() > 20);
  CHECK(comments_of(sources_and_texts()).size() > 1000);
  CHECK(strings_of(sources_and_texts()).size() > 1000);
}

TEST_CASE("language: comments and Markdown use the field's words") {
  check_none(language().banned_phrases(comments_of(sources_and_texts())));
}

TEST_CASE("language: strings use the field's words") {
  check_none(language().banned_phrases(strings_of(sources_and_texts())));
}

TEST_CASE("language: no sentence is longer than 40 words") {
  check_none(sentences_too_long(comments_of(sources_and_texts())));
}

TEST_CASE("language: help lines start with a capital and have no full stop") {
  check_none(help_lines_badly_written(sources_and_texts()));
}

TEST_CASE("language: no README is longer than 900 words") {
  check_none(readmes_too_long(sources_and_texts()));
}

TEST_CASE("language: every link of a document resolves") {
  check_none(broken_links(sources_and_texts(), leasehold::source_dir()));
}

TEST_CASE("language: every test that a document names exists") {
  check_none(missing_tests(sources_and_texts(), leasehold::source_dir()));
}
