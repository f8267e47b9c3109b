/// The commands of brokerctl while a command line is parsed. Each command adds its options and a
/// function that makes its verb from their values. Internal to the arguments.
///
/// Lifetime: outlives the parse. Threads: one.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/cli/number_option.hpp"
#include "tools/brokerctl/arguments/arguments.hpp"

namespace leasehold::brokerctl {

/// Called once, after the parse. It keeps the values of the options alive until then.
using MakeVerb = std::function<Result<Verb>()>;

struct CommandText {
  std::string name;
  std::string help;
  std::string examples = {};  ///< One per line.
  /// A noun's singular, also an alias of the noun. Empty: its elements have no names.
  std::string singular = {};
};

class Commands {
 public:
  explicit Commands(CLI::App& app) : app_(app) {}

  CLI::App& app() { return app_; }

  CLI::App* add_verb(const CommandText& text, MakeVerb make) {
    return add(app_, text, "Verbs", std::move(make));
  }
  CLI::App* add_verb(CLI::App& noun, const CommandText& text, MakeVerb make) {
    return add(noun, text, "Verbs", std::move(make));
  }
  /// A command that only has commands of its own.
  CLI::App* add_group(const CommandText& text) {
    CLI::App* group = add(app_, text, "Without a broker", {});
    group->require_subcommand(1);
    return group;
  }
  CLI::App* add_local_verb(const CommandText& text, MakeVerb make) {
    return add(app_, text, "Without a broker", std::move(make));
  }

  /// Returns the noun, its verb `list`, and `get NOUN`. All print the list and have --watch; the
  /// last two take names, which limit the list.
  std::array<CLI::App*, 3> add_noun(const CommandText& text, MakeVerb list);

  /// Adds --watch to a command that prints a list or a state.
  void add_watch(CLI::App& command);
  /// Adds --request-id. A repeated call with the same id has the same effect as one call.
  void add_request_id(CLI::App& verb);

  // After the parse.
  Result<Verb> make_verb() const;
  Result<RequestId> request_id() const;
  /// The value of --interval-ms with --watch, otherwise nothing.
  std::optional<std::int64_t> watch_ms() const;
  /// The singular of the noun that is listed, and the names given for it.
  Named named() const;

 private:
  CLI::App* add(CLI::App& parent, const CommandText& text, const char* group, MakeVerb make);
  CLI::App* add_get(const CommandText& text, MakeVerb list);
  void add_names(CLI::App& list, const std::string& singular);
  const CLI::App& chosen() const;

  CLI::App& app_;
  std::map<const CLI::App*, MakeVerb> makers_;
  CLI::App* get_ = nullptr;
  std::map<const CLI::App*, std::string> singulars_;  // of the commands that take names
  std::vector<std::string> names_;
  std::string request_id_;
  bool watch_ = false;
  std::int64_t watch_interval_ms_ = 2000;
};

/// Adds an option or a positional that takes a name.
CLI::Option* add_name(CLI::App& command, const std::string& option, std::string& value,
                      const std::string& help);
/// Adds an option that takes free text on one line (TextRule::Sentence).
CLI::Option* add_sentence(CLI::App& command, const std::string& option, std::string& value,
                          const std::string& help);

/// Nothing for an empty text.
template <class Id>
Result<std::optional<Id>> parse_optional(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return TRY(Id::parse(text));
}

void add_lease_verbs(Commands& commands);  ///< `status` to `watch`.
void add_nouns(Commands& commands);
void add_adapters(Commands& commands);
void add_audit(Commands& commands);
void add_key_nouns(Commands& commands);  ///< keys, usage.
void add_requests(Commands& commands);
void add_local_commands(Commands& commands);  ///< explain, completion, man, doctor, plan.
void add_cell_commands(Commands& commands);

}  // namespace leasehold::brokerctl
