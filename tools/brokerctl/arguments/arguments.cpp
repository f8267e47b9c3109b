#include "tools/brokerctl/arguments/arguments.hpp"

#include "common/cli/command_tree.hpp"
#include "common/cli/version.hpp"
#include "common/random.hpp"
#include "ipc/control/messages/json_fields.hpp"
#include "tools/brokerctl/arguments/commands.hpp"
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

std::array<CLI::App*, 2> Commands::add_noun(const CommandText& text, MakeVerb list) {
  CLI::App* noun = add(app_, text, "Nouns (a noun alone lists)", list);
  noun->require_subcommand(0, 1);
  const std::array both{noun, add_verb(*noun, {"list", text.help}, std::move(list))};
  for (CLI::App* command : both) add_watch(*command);
  return both;
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

Result<Verb> Commands::make_verb() const {
  const CLI::App* noun = app_.get_subcommands().front();
  const auto verbs = noun->get_subcommands();
  return makers_.at(verbs.empty() ? noun : verbs.front())();
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
                 "Format: table, wide for more columns, or json for programs")
      ->check(CLI::IsMember({"table", "wide", "json"}))
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

bool is_list(const Verb& verb) {
  return std::holds_alternative<Show>(verb) || std::holds_alternative<ListLeases>(verb) ||
         std::holds_alternative<ListOperatorActions>(verb) ||
         std::holds_alternative<ListAudit>(verb) || std::holds_alternative<ListRequests>(verb);
}

Output output_of(const std::string& word) {
  if (word == "json") return Output::Json;
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
  add_local_commands(commands);
  const std::vector<std::string> arguments = cli::options_behind_command(app, words);
  const Output output = requested_output(arguments);
  if (auto text = cli::unknown_command(app, arguments))
    return std::unexpected(UsageWithOutput{{.text = *std::move(text)}, output});
  if (auto usage = parse_cli_arguments(app, arguments))
    return std::unexpected(UsageWithOutput{*std::move(usage), output});
  auto verb = commands.make_verb();
  if (!verb)
    return std::unexpected(UsageWithOutput{{.text = std::move(verb).error().detail}, output});
  Arguments parsed{.output = output_of(options.output),
                   .watch_ms = commands.watch_ms(),
                   .verb = *std::move(verb)};
  if (parsed.watch_ms && !is_list(parsed.verb)) {
    return std::unexpected(
        UsageWithOutput{{.text = "--watch works with lists and status only; remove it"}, output});
  }
  if (!options.socket.empty()) parsed.socket = options.socket;
  return parsed;
}

}  // namespace leasehold::brokerctl
