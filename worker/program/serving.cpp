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

Serving::Serving(const Dependencies& deps, TenantServer::Acceptor acceptor) {
  const Attachment& attachment = deps.broker->attachment();
  // The mapper has a low priority, because a typed end is more urgent than a grant.
  boost::asio::post(mapper_, [] {
    set_thread_name("mapper");
    use_batch_scheduling();
  });
  boost::asio::post(unmapper_, [] { set_thread_name("unmapper"); });
  // The parser has a low priority too, so that a tenant's long prompts and schemas do not delay the
  // steps of other tenants.
  boost::asio::post(parser_, [] {
    set_thread_name("parser");
    use_batch_scheduling();
  });
  boost::asio::post(line_parser_, [] {
    set_thread_name("lines");
    use_batch_scheduling();
  });
  const PromptEncoder prompt = deps.model->prompt_encoder();
  leases_.emplace(LeaseService::Dependencies{
      .io = deps.io,
      .mapper = mapper_.get_executor(),
      .unmapper = unmapper_.get_executor(),
      .broker = &deps.broker->link(),
      .loop = deps.loop,
      .engine = deps.engine,
      .table = &attachment.table,
      .clock = deps.clock,
      .regions = deps.compute->mapper.get(),
      .swap_regions = deps.compute->swap_mapper.get(),
      // Between two steps no unit runs on the host, but a GPU may still run queued launches.
      .when_settled =
          [compute = deps.compute](SettleScope scope, std::move_only_function<void()> done) {
            compute->backend->when_settled(scope, std::move(done));
          },
      .parser = parser_.get_executor(),
      .encode = [prompt](const std::string& text) { return prompt.encode_published(text); },
      .on_fenced = [this](LeaseId lease) { server_->lease_ended(lease); }});
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
