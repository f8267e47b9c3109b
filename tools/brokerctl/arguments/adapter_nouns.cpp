// `brokerctl adapters`.
#include "ipc/control/messages/json_fields.hpp"
#include "tools/brokerctl/arguments/commands.hpp"

namespace leasehold::brokerctl {
namespace {

/// The values of the commands of `adapters`.
struct AdapterValues {
  std::string adapter, tenant, worker;
  wire::AdapterAdd add;
};

CLI::App* add_adapter_verb(Commands& commands, CLI::App& noun, const CommandText& text,
                           AdapterValues& values, MakeVerb make) {
  auto* verb = commands.add_verb(noun, text, std::move(make));
  add_name(*verb, "adapter", values.adapter, "Name of the adapter")->required();
  commands.add_request_id(*verb);
  return verb;
}

void add_add(Commands& commands, CLI::App& noun, const std::shared_ptr<AdapterValues>& values) {
  auto* verb = add_adapter_verb(
      commands, noun,
      {"add",
       "Register a LoRA adapter, or a new version of it: running texts keep theirs. Workers read "
       "the file below their --adapters directory",
       "brokerctl adapters add support --file acme/support.gguf --tenant acme\nbrokerctl adapters "
       "add tone --file tone --shared --pinned"},
      *values, [&commands, values]() -> Result<Verb> {
        wire::AdapterAdd message = values->add;
        if (message.shared == !values->tenant.empty())
          return fail(Errc::BadRequest, "give exactly one of --tenant and --shared");
        message.adapter = TRY(AdapterName::parse(values->adapter));
        message.tenant = TRY(parse_optional<TenantId>(values->tenant));
        message.request_id = TRY(commands.request_id());
        return message;
      });
  verb->add_option("--file", values->add.file,
                   "GGUF file or PEFT folder, relative to the workers' --adapters directory")
      ->required()
      ->check([](const std::string& text) { return check_text(TextRule::RelativePath, text); });
  auto* tenant = add_name(*verb, "--tenant", values->tenant, "The only tenant that may use it");
  verb->add_flag("--shared", values->add.shared, "Let every tenant use it")->excludes(tenant);
  verb->add_flag("--pinned", values->add.pinned, "Never evict it for lack of memory");
}

/// `load` and `unload`.
template <class Order>
void add_order(Commands& commands, CLI::App& noun, const CommandText& text,
               const std::shared_ptr<AdapterValues>& values) {
  auto* verb =
      add_adapter_verb(commands, noun, text, *values, [&commands, values]() -> Result<Verb> {
        Order message;
        message.adapter = TRY(AdapterName::parse(values->adapter));
        message.worker = values->worker;
        message.request_id = TRY(commands.request_id());
        return message;
      });
  add_name(*verb, "--worker", values->worker, "Name of the worker")->required();
}

}  // namespace

void add_adapters(Commands& commands) {
  const auto values = std::make_shared<AdapterValues>();
  CLI::App& noun = *commands.add_noun({"adapters", "LoRA adapters with version, owner and memory",
                                       "brokerctl adapters\nbrokerctl adapters -o wide", "adapter"},
                                      [] { return Show::Adapters; })[0];
  add_add(commands, noun, values);
  add_order<wire::AdapterLoad>(
      commands, noun,
      {"load", "Load an adapter on a worker before its first request, and wait for it",
       "brokerctl adapters load support --worker w1"},
      values);
  add_order<wire::AdapterUnload>(
      commands, noun,
      {"unload", "Free the memory of an adapter on a worker once no text uses it",
       "brokerctl adapters unload support --worker w1"},
      values);
  add_adapter_verb(commands, noun,
                   {"remove",
                    "Forbid an adapter: new requests get UnknownAdapter, and running texts keep it "
                    "until they end; `brokerctl revoke --adapter` ends them",
                    "brokerctl adapters remove support"},
                   *values, [&commands, values]() -> Result<Verb> {
                     wire::AdapterRemove message;
                     message.adapter = TRY(AdapterName::parse(values->adapter));
                     message.request_id = TRY(commands.request_id());
                     return message;
                   });
}

}  // namespace leasehold::brokerctl
