#include "tools/brokerctl/local_commands.hpp"

#include <CLI/CLI.hpp>

#include "common/cli/man_page.hpp"
#include "common/cli/size_option.hpp"
#include "kernels/model/architecture_keys.hpp"
#include "kernels/model/kv_type.hpp"
#include "tools/brokerctl/completion.hpp"
#include "tools/brokerctl/doctor.hpp"
#include "tools/brokerctl/explain_error.hpp"
#include "tools/cli/broker_address.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr const char* kGroup = "Without a broker";

/// Adds the error codes as values of `explain` for completion. CLI11 does not check them, because
/// `explain` takes exit codes as well.
std::vector<Command> with_error_codes(std::vector<Command> tree) {
  for (Command& command : tree)
    for (CommandOption& option : command.options)
      if (command.path == "explain" && option.is_positional) option.values = error_code_names();
  return tree;
}

std::string completion(const std::string& shell, std::span<const Command> tree) {
  if (shell == "zsh") return zsh_completion(tree);
  return shell == "fish" ? fish_completion(tree) : bash_completion(tree);
}

}  // namespace

void LocalCommands::add(CLI::App& app) {
  app.add_subcommand("explain", "Explain an error code and what to do next")
      ->group(kGroup)
      ->add_option("code", code_, "Name or exit code, such as LeaseRevoked or 28; default: all");
  app.add_subcommand("completion",
                     "Print the script that completes commands and options in a shell")
      ->group(kGroup)
      ->add_option("shell", shell_, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app.add_subcommand("man", "Print the manual page brokerctl(1)")->group(kGroup);
  app.add_subcommand("doctor",
                     "Check kernel, limits, users, socket, state directory and card; exit code 1 "
                     "if one is wrong")
      ->group(kGroup)
      ->add_option("--state-dir", state_dir_, "The broker's --state-dir")
      ->capture_default_str();
  add_plan(app);
}

void LocalCommands::add_plan(CLI::App& app) {
  CLI::App* plan =
      app.add_subcommand("plan",
                         "Check whether a model and its tenants fit, and print the settings")
          ->group(kGroup);
  plan->add_option("--model", plan_.request.model, "GGUF model file")->required();
  plan->add_option("--tenants", plan_.request.tenants,
                   "Tenants that run one request each at a time")
      ->check(CLI::Range(1u, 1u << 16))
      ->capture_default_str();
  plan->add_option("--context", plan_.request.context,
                   "Tokens of one request, prompt and answer; default: the model's context")
      ->check(CLI::Range(2u, kMaxContext));
  plan->add_option("--kv-type", plan_.request.kv_type, "Element type of the KV cache")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  plan->add_option("--max-extents", plan_.request.max_extents, "As the option of leasehold-broker")
      ->check(CLI::Range(1u, 16'384u))
      ->capture_default_str();
  add_size_option(*plan, "--memory", plan_.memory_bytes,
                  "Memory of the machine, for example 64GiB; default: what is available here",
                  {.low = 1ull << 20, .high = 1ull << 50});
}

Result<std::optional<Verb>> LocalCommands::verb(const CLI::App& app,
                                                const std::string& command) const {
  if (command == "explain") return TRY(explain_error(code_));
  if (command == "completion")
    return PrintText{.text = completion(shell_, with_error_codes(command_tree(app)))};
  if (command == "man") return PrintText{.text = man_page(app.get_name(), command_tree(app))};
  if (command == "plan") return MakeText{[request = plan_] { return plan(request); }};
  if (command != "doctor") return std::nullopt;
  std::optional<std::string> socket;
  if (app.count("--socket") > 0) socket = app.get_option("--socket")->as<std::string>();
  return MakeText{[socket, state_dir = state_dir_]() -> Result<PrintText> {
    const std::string path = cli::broker_address(socket, cli::read_environment());
    return report(examine(read_machine(path, state_dir)));
  }};
}

}  // namespace leasehold::brokerctl
