#include "worker/program/serving.hpp"

#include <boost/asio/post.hpp>
#include <chrono>
#include <thread>

#include "common/machine/process.hpp"

namespace leasehold {
namespace {

constexpr auto kCloseWaitInterval = std::chrono::milliseconds(5);
constexpr int kMaxCloseWaits = 200;

}  // namespace

/// These threads have a low priority: a typed end is more urgent than a grant, and a tenant's long
/// prompts and schemas must not delay the steps of other tenants.
void Serving::start_threads() {
  boost::asio::post(mapper_, [] {
    set_thread_name("mapper");
    use_batch_scheduling();
  });
  boost::asio::post(unmapper_, [] { set_thread_name("unmapper"); });
  boost::asio::post(parser_, [] {
    set_thread_name("parser");
    use_batch_scheduling();
  });
  boost::asio::post(line_parser_, [] {
    set_thread_name("lines");
    use_batch_scheduling();
  });
}

LeaseService::Dependencies Serving::lease_dependencies(const Dependencies& deps) {
  const Attachment& attachment = deps.broker->attachment();
  return {.io = deps.io,
          .mapper = mapper_.get_executor(),
          .unmapper = unmapper_.get_executor(),
          .broker = &deps.broker->link(),
          .loop = deps.loop,
          .engine = deps.engine,
          .table = &attachment.table,
          .clock = deps.clock,
          .regions = deps.compute->mapper.get(),
          .first_regions = deps.compute->first_mapper.get(),
          .swap_regions = deps.compute->swap_mapper.get(),
          // Between two steps no unit runs on the host, but a GPU may still run queued launches.
          .when_settled =
              [compute = deps.compute](SettleScope scope, std::move_only_function<void()> done) {
                compute->backend->when_settled(scope, std::move(done));
              },
          .parser = parser_.get_executor(),
          .encode = [prompt = deps.model->prompt_encoder()](
                        const std::string& text) { return prompt.encode_published(text); },
          .on_fenced = [this](LeaseId lease) { server_->lease_ended(lease); },
          .on_adapter_granted =
              [this](const wire::LeaseGrant& grant) {
                if (adapters_ && grant.adapter)
                  adapters_->granted(grant.lease, grant.adapter->value, grant.adapter_version);
              }};
}

AdapterLoader::Dependencies Serving::adapter_dependencies(const Dependencies& deps) {
  const Attachment& attachment = deps.broker->attachment();
  return {
      .loop = deps.loop,
      .answers = deps.io->get_executor(),
      .reader = adapter_reader_->get_executor(),
      .call =
          [&link = deps.broker->link()](const std::string& method, control::Payload params,
                                        control::Peer::ReplyHandler on_reply, Duration timeout) {
            link.call_async(method, std::move(params), std::move(on_reply), timeout);
          },
      .model = &deps.model->config,
      .clock = deps.clock,
      .directory = deps.adapters,
      .copy = {.memory = &deps.engine->memory(),
               .backend = deps.compute->backend.get(),
               .gate = deps.engine_gate,
               .table = &attachment.table,
               .revocations = &attachment.table.revocations(attachment.worker),
               .observer = deps.observer}};
}

Serving::Serving(const Dependencies& deps, TenantServer::Acceptor acceptor) {
  const Attachment& attachment = deps.broker->attachment();
  start_threads();
  const PromptEncoder prompt = deps.model->prompt_encoder();
  if (deps.adapters.fd >= 0) {
    adapter_reader_.emplace(1);
    boost::asio::post(*adapter_reader_, [] {
      set_thread_name("adapters");
      use_batch_scheduling();
    });
    adapters_.emplace(adapter_dependencies(deps));
  }
  leases_.emplace(lease_dependencies(deps));
  server_.emplace(ServeDependencies{.io = deps.tenant_io,
                                    .loop = deps.loop,
                                    .running_requests = deps.running_requests,
                                    .parser = parser_.get_executor(),
                                    .parse_long =
                                        [this](const TenantId& tenant, auto work) {
                                          line_turns_.add(tenant, std::move(work));
                                          boost::asio::post(line_parser_,
                                                            [this] { line_turns_.do_next(); });
                                        },
                                    .prompt = prompt,
                                    .embeddings = deps.embeddings,
                                    .broker = &deps.broker->link(),
                                    .table = &attachment.table,
                                    .clock = deps.clock,
                                    .eviction_listener = deps.eviction_listener,
                                    .token_key = attachment.token_key,
                                    .metrics = deps.metrics,
                                    .tracing = deps.tracing});
  boost::asio::post(*deps.tenant_io, [this, acceptor = std::move(acceptor)]() mutable {
    server_->serve(std::move(acceptor));
  });
}

void Serving::close(IoThread& io) {
  (void)io.run([this]() -> Result<void> {
    server_->close();
    return {};
  });
  bool closed = false;
  for (int wait = 0; wait < kMaxCloseWaits && !closed; ++wait) {
    if (wait > 0) std::this_thread::sleep_for(kCloseWaitInterval);
    (void)io.run([&]() -> Result<void> {
      closed = server_->is_closed();
      return {};
    });
  }
}

}  // namespace leasehold
