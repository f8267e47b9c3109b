#include "common/cli/command_tree.hpp"
#include "common/cli/man_page.hpp"
#include "common/cli/size_option.hpp"
#include "kernels/model/architecture_keys.hpp"
#include "kernels/model/kv_type.hpp"
#include "tools/brokerctl/arguments/commands.hpp"
#include "tools/brokerctl/completion.hpp"
#include "tools/brokerctl/doctor.hpp"
#include "tools/brokerctl/explain_error.hpp"
#include "tools/brokerctl/plan.hpp"
#include "tools/cli/broker_address.hpp"

namespace leasehold::brokerctl {
namespace {

/// Adds values that CLI11 does not check: error codes to `explain`, which takes exit codes as well,
/// and commands to `help`.
std::vector<Command> with_values(std::vector<Command> tree) {
  const std::vector<std::string> commands = tree.front().commands;
  for (Command& command : tree) {
    for (CommandOption& option : command.options) {
      if (command.path == "explain" && option.is_positional) option.values = error_code_names();
      if (command.path == "help" && option.is_positional) option.values = commands;
    }
  }
  return tree;
}

std::string completion(const std::string& shell, std::span<const Command> tree) {
  if (shell == "zsh") return zsh_completion(tree);
  return shell == "fish" ? fish_completion(tree) : bash_completion(tree);
}

void add_completion(Commands& commands) {
  const auto shell = std::make_shared<std::string>();
  commands
      .add_local_verb(
          {"completion", "Print the script that completes commands and options in a shell",
           "brokerctl completion bash >/usr/share/bash-completion/completions/brokerctl\nbrokerctl "
           "completion zsh >/usr/share/zsh/vendor-completions/_brokerctl\nbrokerctl completion "
           "fish >/usr/share/fish/vendor_completions.d/brokerctl.fish"},
          [&commands, shell] {
            return PrintText{.text = completion(*shell, with_values(command_tree(commands.app())))};
          })
      ->add_option("shell", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

void add_doctor(Commands& commands) {
  const auto state_dir = std::make_shared<std::string>("/var/lib/leasehold");
  commands
      .add_local_verb({"doctor",
                       "Check kernel, limits, users, socket, state directory and card; exit code 1 "
                       "if one is wrong",
                       "brokerctl doctor\nbrokerctl doctor -o json"},
                      [&commands, state_dir] {
                        const CLI::App& app = commands.app();
                        std::optional<std::string> socket;
                        if (app.count("--socket") > 0)
                          socket = app.get_option("--socket")->as<std::string>();
                        return MakeText{[socket, state_dir]() -> Result<PrintText> {
                          const std::string path =
                              cli::broker_address(socket, cli::read_environment());
                          return report(examine(read_machine(path, *state_dir)));
                        }};
                      })
      ->add_option("--state-dir", *state_dir, "The broker's --state-dir")
      ->capture_default_str();
}

void add_plan(Commands& commands) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* verb = commands.add_local_verb(
      {"plan", "Check whether a model and its tenants fit, and print the settings",
       "brokerctl plan --model model.gguf --tenants 16 --context 4096\nbrokerctl plan --model "
       "model.gguf --memory 64GiB -o json"},
      [options] { return MakeText{[options] { return plan(*options); }}; });
  PlanRequest& request = options->request;
  verb->add_option("--model", request.model, "GGUF model file")->required();
  add_number_option(*verb, "--tenants", request.tenants,
                    "Tenants that run one request each at a time", 1u, 1u << 16);
  verb->add_option("--context", request.context,
                   "Tokens of one request, prompt and answer; default: the model's context")
      ->check(CLI::Range(2u, kMaxContext));
  verb->add_option("--kv-type", request.kv_type, "Element type of the KV cache")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  add_number_option(*verb, "--max-extents", request.max_extents,
                    "As the option of leasehold-broker", 1u, 16'384u);
  verb->add_option("--draft-model", request.draft_model, "GGUF model that makes proposals");
  add_number_option(*verb, "--draft-context", request.draft_context,
                    "Longest text of the draft model, as the option of leasehold-worker", 2u,
                    kMaxContext);
  add_number_option(*verb, "--max-batch-size", request.max_batch_size,
                    "Texts of the draft model, as the option of leasehold-worker", 1u,
                    kMaxStepSequences);
  add_size_option(*verb, "--memory", options->memory_bytes,
                  "Memory of the machine, for example 64GiB; default: what is available here",
                  {.low = 1ull << 20, .high = 1ull << 50});
}

}  // namespace

void add_local_commands(Commands& commands) {
  const auto words = std::make_shared<std::vector<std::string>>();
  commands
      .add_local_verb(
          {"help", "Show the help of a command",
           "brokerctl help revoke\nbrokerctl help tenants admit"},
          [&commands]() -> Result<Verb> { return PrintText{.text = commands.app().help()}; })
      ->add_option("command", *words, "Words of the command; default: this overview");
  const auto code = std::make_shared<std::string>();
  commands
      .add_local_verb({"explain", "Explain an error code and what to do next",
                       "brokerctl explain LeaseRevoked\nbrokerctl explain 28\nbrokerctl explain"},
                      [code] { return explain_error(*code); })
      ->add_option("code", *code, "Name or exit code, such as LeaseRevoked or 28; default: all");
  add_completion(commands);
  commands.add_local_verb({"man", "Print the manual page brokerctl(1)",
                           "brokerctl man >/usr/share/man/man1/brokerctl.1"},
                          [&commands] {
                            const CLI::App& app = commands.app();
                            return PrintText{.text = man_page(app.get_name(), command_tree(app))};
                          });
  add_doctor(commands);
  add_plan(commands);
}

}  // namespace leasehold::brokerctl
