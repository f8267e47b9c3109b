// explain, completion, man, and the examples of the help.
#include <stdlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "common/machine/text_file.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/brokerctl/arguments/arguments.hpp"

#include <fstream>

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

PrintText printed(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  INFO((arguments ? "" : arguments.error().text));
  REQUIRE(arguments);
  return std::get<PrintText>(arguments->verb);
}

std::string help_of(std::vector<std::string> words) {
  words.emplace_back("--help");
  const auto arguments = parse_arguments(words);
  REQUIRE_FALSE(arguments);
  REQUIRE(arguments.error().exit_code == kExitOk);
  return arguments.error().text;
}

/// The words of an example as a shell would pass them, without the redirection.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words{""};
  bool is_quoted = false;
  for (const char letter : line) {
    if (letter == '"') {
      is_quoted = !is_quoted;
    } else if (letter == ' ' && !is_quoted) {
      words.emplace_back();
    } else {
      words.back() += letter;
    }
  }
  std::erase_if(words, [](const std::string& word) { return word.starts_with('>'); });
  return words;
}

/// What bash offers for this command line. `program` is the word before it.
std::vector<std::string> completed(const std::vector<std::string>& words,
                                   const std::string& program = "brokerctl") {
  const TemporaryDirectory directory = TemporaryDirectory::create("completion").value();
  const std::string script = directory.path() / "script", answer = directory.path() / "answer";
  std::ofstream file(script);
  file << printed({"completion", "bash"}).text << "COMP_WORDS=('" << program << "'";
  for (const std::string& word : words) file << " '" << word << "'";
  file << ")\nCOMP_CWORD=" << words.size() << "\n_brokerctl\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  file.close();
  REQUIRE(std::system(("bash " + script + " >" + answer).c_str()) == 0);
  std::istringstream lines(read_text_file(answer, 1 << 20).value());
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) found.push_back(line);
  return found;
}

/// Each line is a command line that brokerctl accepts.
void check_each_parses(const std::string& file) {
  std::istringstream lines(read_text_file(file, 1 << 20).value());
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(parse_arguments(words_of(line)));
  }
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

TEST_CASE("brokerctl explain: every error code is explained, by its name and by its exit code") {
  for (int i = 0; i < kErrcCount; ++i) {
    const auto code = static_cast<Errc>(i);
    const PrintText by_name = printed({"explain", std::string(name(code))});
    CHECK(by_name.text.contains(error_meaning(code)));
    CHECK(by_name.text.contains(error_hint(code)));
    CHECK(printed({"explain", std::to_string(exit_code(code))}).text == by_name.text);
    const auto json = nlohmann::json::parse(by_name.json);
    CHECK(json.at("exit_code") == exit_code(code));
    CHECK(json.at("retryable") == is_retryable(code));
    CHECK(json.at("scope") == name(failure_scope(code)));
  }
}

TEST_CASE("brokerctl explain: without a word all codes are listed") {
  CHECK(nlohmann::json::parse(printed({"explain"}).json).at("items").size() ==
        std::size_t{kErrcCount});
}

TEST_CASE("brokerctl explain: an unknown word is wrong usage that names the nearest code") {
  const auto near = parse_arguments(std::vector<std::string>{"explain", "LeaseRevokd"});
  REQUIRE_FALSE(near);
  CHECK(near.error().text.contains("did you mean 'LeaseRevoked'?"));
  CHECK_FALSE(parse_arguments(std::vector<std::string>{"explain", "9"}));
}

TEST_CASE("brokerctl help: every command but the lists has examples, and each example parses") {
  const std::vector<std::string> commands{"status",
                                          "revoke",
                                          "drain",
                                          "undrain",
                                          "timeline",
                                          "events",
                                          "watch",
                                          "leases",
                                          "extents",
                                          "workers",
                                          "actions",
                                          "tenants",
                                          "prefix",
                                          "man",
                                          "tenants admit",
                                          "tenants remove",
                                          "quarantine",
                                          "quarantine release",
                                          "explain",
                                          "completion",
                                          "prefix publish",
                                          "adapters",
                                          "adapters add",
                                          "adapters load",
                                          "adapters unload",
                                          "adapters remove",
                                          "workers replace",
                                          "keys",
                                          "keys create",
                                          "keys revoke",
                                          "keys update",
                                          "usage",
                                          "requests",
                                          "requests cancel",
                                          "get",
                                          "describe",
                                          "describe lease",
                                          "cell",
                                          "cell drain",
                                          "cell expire",
                                          "cell ledger",
                                          "cell tenants admit",
                                          "cell tenants remove",
                                          "cell roles",
                                          "cell keys",
                                          "cell keys create",
                                          "cell keys update",
                                          "cell keys revoke"};
  for (const std::string& command : commands) {
    std::istringstream lines(help_of(words_of(command)));
    int examples = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("brokerctl " + command)) continue;
      CAPTURE(line);
      auto words = words_of(line);
      words.erase(words.begin());
      CHECK(parse_arguments(words));
      ++examples;
    }
    CAPTURE(command);
    CHECK(examples > 0);
  }
}

TEST_CASE("brokerctl completion: bash completes commands, verbs, options and closed lists") {
  const auto first = completed({""});
  for (const char* word : {"leases", "tenants", "revoke", "explain", "--socket", "-o"})
    CHECK(has(first, word));
  CHECK(completed({"qua"}) == std::vector<std::string>{"quarantine"});
  const auto verbs = completed({"tenants", ""});
  CHECK(has(verbs, "admit"));
  CHECK_FALSE(has(verbs, "revoke"));
  CHECK(completed({"-o", "json", "tenants", "admit", "ann", "--max-b"}) ==
        std::vector<std::string>{"--max-blocks"});
  CHECK(completed({"leases", "--state", "F"}) == std::vector<std::string>{"Fenced"});
  CHECK(completed({"completion", "f"}) == std::vector<std::string>{"fish"});
}

TEST_CASE(
    "brokerctl completion: bash asks the broker for names, and offers none that are not names") {
  const TemporaryDirectory directory = TemporaryDirectory::create("completion").value();
  const std::string stub = directory.path() / "brokerctl";
  std::ofstream(stub) << "#!/bin/sh\necho \"$@\" >>\"$0.asked\"\necho \"$@\" >&2\n"
                         "printf '%s\\n' alice bob cat/r-1 '$(touch x)' 'a b'\n";
  std::filesystem::permissions(stub, std::filesystem::perms::owner_all);
  using Words = std::vector<std::string>;
  CHECK(completed({"--socket", "/s", "drain", "--tenant", ""}, stub) ==
        Words{"alice", "bob", "cat/r-1"});
  CHECK(completed({"revoke", "--tenant", "b"}, stub) == Words{"bob"});
  CHECK(completed({"get", "tenant", "al"}, stub) == Words{"alice"});
  CHECK(has(completed({"workers", "replace", ""}, stub), "bob"));
  CHECK(completed({"describe", "keys", "bo"}, stub) == Words{"bob"});
  CHECK(completed({"revoke", "bo"}, stub) == Words{"bob"});
  CHECK(completed({"requests", "cancel", "cat/"}, stub) == Words{"cat/r-1"});
  CHECK(completed({"usage", "--key", "al"}, stub) == Words{"alice"});
  CHECK(read_text_file(stub + ".asked", 1 << 20).value() ==
        "--socket /s get tenants -o name\nget tenants -o name\nget tenants -o name\n"
        "get workers -o name\nget keys -o name\nget leases --state Live -o name\n"
        "get requests -o name\nget keys -o name\n");
  check_each_parses(stub + ".asked");
  std::filesystem::remove(stub + ".asked");
  CHECK(completed({"cell", "--config", "/c.toml", "keys", "revoke", "al"}, stub) == Words{"alice"});
  CHECK(completed({"cell", "keys", "create", "--tenant", "b"}, stub) == Words{"bob"});
  CHECK(has(completed({"cell", "drain", ""}, stub), "alice"));
  CHECK(read_text_file(stub + ".asked", 1 << 20).value() ==
        "cell keys --config /c.toml -o name\ncell tenants -o name\ncell hosts -o name\n");
  check_each_parses(stub + ".asked");
  CHECK(completed({"revoke", "--tenant", ""}, directory.path() / "absent") == Words{""});
}

TEST_CASE("brokerctl completion: explain offers every error code in every shell") {
  CHECK(completed({"explain", "LeaseR"}) == std::vector<std::string>{"LeaseRevoked"});
  std::string all;
  for (int i = 0; i < kErrcCount; ++i) all += std::string(name(static_cast<Errc>(i))) + " ";
  all.pop_back();
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    CHECK(printed({"completion", shell}).text.contains(all));
  }
}

TEST_CASE("brokerctl completion: zsh and fish scripts have every command") {
  for (const std::string shell : {"zsh", "fish"}) {
    const std::string script = printed({"completion", shell}).text;
    for (const char* word : {"quarantine", "release", "admit", "--max-blocks", "Fenced"}) {
      CAPTURE(shell, word);
      const std::string option = std::string(word).substr(std::string(word).find_first_not_of('-'));
      CHECK(script.contains(shell == "fish" ? option : word));
    }
  }
}

TEST_CASE("brokerctl help: shows the help of the command whose words follow") {
  using Words = std::vector<std::string>;
  const auto text_of = [](const Words& words) {
    const auto arguments = parse_arguments(words);
    REQUIRE_FALSE(arguments);
    return std::pair(arguments.error().exit_code, arguments.error().text);
  };
  CHECK(text_of({"help"}) == std::pair(int{kExitOk}, help_of({})));
  CHECK(text_of({"help", "tenants", "admit"}).second == help_of({"tenants", "admit"}));
  CHECK(text_of({"help", "tenant"}).second == help_of({"tenants"}));
  CHECK(text_of({"help", "get", "lease"}).second == help_of({"get", "leases"}));
  CHECK(text_of({"help", "revok"}).first == kExitUsage);
  CHECK_THAT(text_of({"help", "revok"}).second, Catch::Contains("did you mean 'revoke'?"));
}

TEST_CASE("brokerctl man: the page has every command, option and exit code") {
  const std::string page = printed({"man"}).text;
  CHECK(page.starts_with(".TH BROKERCTL 1 "));
  CHECK(page.contains(".SS brokerctl tenants admit\n"));
  CHECK(page.contains(".SS brokerctl cell keys revoke\n"));
  CHECK(page.contains("\\-\\-max\\-blocks"));
  CHECK(page.contains("\\fB28\\fR LeaseRevoked"));
  CHECK(page.contains("brokerctl revoke 17.4 \\-\\-wait\n"));
}
