#include "tools/brokerctl/arguments/arguments.hpp"

#include "common/cli/command_tree.hpp"
#include "common/cli/version.hpp"
#include "common/random.hpp"
#include "ipc/control/messages/json_fields.hpp"
#include "tools/brokerctl/arguments/commands.hpp"
#include "tools/brokerctl/arguments/other_words.hpp"
#include "tools/cli/unknown_command.hpp"

namespace leasehold::brokerctl {

CLI::App* Commands::add(CLI::App& parent, const CommandText& text, const char* group,
                        MakeVerb make) {
  // A subcommand inherits group and footer of its parent.
  CLI::App* command = parent.add_subcommand(text.name, text.help)->group(group);
  command->footer(text.examples.empty() ? "" : kExamplesTitle + text.examples);
  makers_.emplace(command, std::move(make));
  return command;
}

std::array<CLI::App*, 3> Commands::add_noun(const CommandText& text, MakeVerb list) {
  CLI::App* noun = add(app_, text, "Nouns (a noun alone lists)", list);
  noun->require_subcommand(0, 1);
  const std::array all{noun, add_verb(*noun, {"list", text.help}, list),
                       add_get(text, std::move(list))};
  for (CLI::App* command : all) add_watch(*command);
  if (text.singular.empty()) return all;
  if (text.singular != text.name)
    for (CLI::App* command : {all[0], all[2]}) command->alias(text.singular);
  for (CLI::App* command : {all[1], all[2]}) add_names(*command, text.singular);
  return all;
}

CLI::App* Commands::add_get(const CommandText& text, MakeVerb list) {
  if (get_ == nullptr) {
    get_ = add(app_,
               {"get", "List elements of a noun: all, or those with the given names",
                "brokerctl get tenants\nbrokerctl get tenant alice bob\nbrokerctl get lease 17.4 "
                "-o json"},
               "Verbs", {});
    get_->require_subcommand(1);
  }
  return add(*get_, {text.name, text.help}, "Nouns", std::move(list));
}

void Commands::add_names(CLI::App& list, const std::string& singular) {
  singulars_.emplace(&list, singular);
  list.add_option("name", names_, "Only these, named as in the first column; default: all");
}

void Commands::add_watch(CLI::App& command) {
  auto* watch = command.add_flag("--watch", watch_, "Repeat until interrupted");
  command.add_option("--interval-ms", watch_interval_ms_, "With --watch: time between two lists")
      ->needs(watch)
      ->check(CLI::Range(100, 3'600'000))
      ->capture_default_str();
}

void Commands::add_request_id(CLI::App& verb) {
  add_name(verb, "--request-id", request_id_,
           "Id that makes a repeated call harmless; default: a new one");
}

const CLI::App& Commands::chosen() const {
  const CLI::App* command = &app_;
  for (auto words = command->get_subcommands(); !words.empty(); words = command->get_subcommands())
    command = words.front();
  return *command;
}

Result<Verb> Commands::make_verb() const {
  return makers_.at(&chosen())();
}

Named Commands::named() const {
  const auto singular = singulars_.find(&chosen());
  if (singular == singulars_.end()) return {};
  return {.noun = singular->second, .names = names_};
}

Result<RequestId> Commands::request_id() const {
  return RequestId::parse(request_id_.empty() ? mint_request_id() : request_id_);
}

std::optional<std::int64_t> Commands::watch_ms() const {
  return watch_ ? std::optional(watch_interval_ms_) : std::nullopt;
}

CLI::Option* add_name(CLI::App& command, const std::string& option, std::string& value,
                      const std::string& help) {
  return command.add_option(option, value, help)->check(check_name);
}

CLI::Option* add_sentence(CLI::App& command, const std::string& option, std::string& value,
                          const std::string& help) {
  const auto check = [](const std::string& text) { return check_text(TextRule::Sentence, text); };
  return command.add_option(option, value, help)->check(check);
}

namespace {

struct CommonOptions {
  std::string socket, output = "table";
};

void add_common(CLI::App& app, CommonOptions& options) {
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "brokerctl " + std::string(version()));
  app.add_option("--socket,--broker", options.socket,
                 "Broker socket; default: $LEASEHOLD_BROKER, else "
                 "$XDG_RUNTIME_DIR/leasehold/broker.sock, else /run/leasehold/broker.sock")
      ->check(check_socket_path);
  app.add_option("-o,--output", options.output,
                 "Format: table, wide for more columns, json for programs, or name for the names "
                 "of a list only")
      ->check(CLI::IsMember({"table", "wide", "json", "name"}))
      ->capture_default_str();
}

/// Searches for -o json without parsing, because errors of the command line itself use this format,
/// too.
Output requested_output(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool value_follows = words[i] == "-o" || words[i] == "--output";
    if (value_follows && i + 1 < words.size() && words[i + 1] == "json") return Output::Json;
    if (words[i] == "-ojson" || words[i] == "--output=json") return Output::Json;
  }
  return Output::Table;
}

/// Replaces `help COMMAND` by `COMMAND --help`.
std::vector<std::string> with_help_option(std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  const bool is_about_help = words.size() > 1 && words[1].starts_with('-');
  if (is_about_help) return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

cli::OtherWords other_words() {
  return {.before_typos = command_for, .after_typos = list_command_for};
}

bool is_list(const Verb& verb) {
  return std::holds_alternative<Show>(verb) || std::holds_alternative<ListLeases>(verb) ||
         std::holds_alternative<ListOperatorActions>(verb) ||
         std::holds_alternative<ListAudit>(verb) || std::holds_alternative<ListRequests>(verb) ||
         std::holds_alternative<ListKeys>(verb);
}

/// True for a list whose first column is a name.
bool has_names(const Verb& verb) {
  if (const Show* query = std::get_if<Show>(&verb)) return *query != Show::Status;
  if (const AskCell* question = std::get_if<AskCell>(&verb)) return question->lists_names;
  return std::holds_alternative<ListLeases>(verb) || std::holds_alternative<WaitWorkers>(verb) ||
         std::holds_alternative<ListRequests>(verb) || std::holds_alternative<ListKeys>(verb);
}

/// Returns what is wrong with options that all commands have; empty: nothing.
std::string conflict(const Arguments& parsed) {
  if (parsed.watch_ms && !is_list(parsed.verb))
    return "--watch works with lists and status only; remove it";
  if (parsed.output == Output::Name && !has_names(parsed.verb))
    return "-o name works with lists of named elements only; use -o json";
  return "";
}

Output output_of(const std::string& word) {
  if (word == "json") return Output::Json;
  if (word == "name") return Output::Name;
  return word == "wide" ? Output::Wide : Output::Table;
}

}  // namespace

std::expected<Arguments, UsageWithOutput> parse_arguments(std::span<const std::string> words) {
  CLI::App app{"Query and control a Leasehold broker", "brokerctl"};
  CommonOptions options;
  add_common(app, options);
  Commands commands(app);
  add_lease_verbs(commands);
  add_nouns(commands);
  add_cell_commands(commands);
  add_local_commands(commands);
  const std::vector<std::string> arguments =
      with_help_option(cli::options_behind_command(app, words));
  const Output output = requested_output(arguments);
  if (auto text = cli::unknown_command(app, arguments, other_words()))
    return std::unexpected(UsageWithOutput{{.text = *std::move(text)}, output});
  if (auto usage = parse_cli_arguments(app, arguments))
    return std::unexpected(UsageWithOutput{*std::move(usage), output});
  auto verb = commands.make_verb();
  if (!verb)
    return std::unexpected(UsageWithOutput{{.text = std::move(verb).error().detail}, output});
  Arguments parsed{.output = output_of(options.output),
                   .watch_ms = commands.watch_ms(),
                   .named = commands.named(),
                   .verb = *std::move(verb)};
  if (std::string wrong = conflict(parsed); !wrong.empty())
    return std::unexpected(UsageWithOutput{{.text = std::move(wrong)}, output});
  if (!options.socket.empty()) parsed.socket = options.socket;
  return parsed;
}

}  // namespace leasehold::brokerctl
