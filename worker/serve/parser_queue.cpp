#include "worker/serve/parser_queue.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "common/machine/confined.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxWaitingBytes = 64 << 20;  // over all tenants
/// One request may exceed this limit by the longest message.
constexpr std::size_t kMaxWaitingBytesPerTenant = 2 << 20;

}  // namespace

ParserQueue::ParserQueue(const ServeDependencies& dependencies, OnParsed on_parsed)
    : io_(dependencies.io),
      thread_(dependencies.parser),
      on_parsed_(std::move(on_parsed)),
      parser_(dependencies.prompt, dependencies.embeddings),
      waiting_bytes_(kMaxWaitingBytes) {}

Result<void> ParserQueue::check_capacity(const TenantId& tenant) const {
  const std::size_t held = waiting_bytes_.held_by(tenant);
  if (held < kMaxWaitingBytesPerTenant && waiting_bytes_.may_take_more(tenant)) return {};
  return fail(Errc::QueueFull,
              fmt::format("{} bytes of requests of tenant {} wait to be parsed; retry when one "
                          "has been answered",
                          held, tenant.value));
}

void ParserQueue::add(IncomingRequest incoming) {
  const TenantId tenant = incoming.claim.tenant;
  waiting_bytes_.take(tenant, size_bytes(incoming.submit));
  queues_[tenant].waiting.push_back(std::move(incoming));
  parse_next(tenant);
}

void ParserQueue::parse_next(const TenantId& tenant) {
  const auto found = queues_.find(tenant);
  if (found == queues_.end() || found->second.is_parsing) return;
  Queue& queue = found->second;
  if (queue.waiting.empty()) {
    queues_.erase(found);
    return;
  }
  queue.is_parsing = true;
  IncomingRequest next = std::move(queue.waiting.front());
  queue.waiting.pop_front();
  waiting_bytes_.give_back(tenant, size_bytes(next.submit));
  boost::asio::post(thread_, [this, next = std::move(next)]() mutable {
    auto parsed = catch_request_errors([&] { return parser_.parse(next); });
    boost::asio::post(*io_, [this, next = std::move(next), parsed = std::move(parsed)]() mutable {
      const TenantId parsed_tenant = next.claim.tenant;
      queues_.at(parsed_tenant).is_parsing = false;
      on_parsed_(std::move(next), std::move(parsed));
      parse_next(parsed_tenant);
    });
  });
}

std::vector<RequestId> ParserQueue::drop(const TenantId& tenant, std::uint64_t connection) {
  std::vector<RequestId> dropped;
  const auto found = queues_.find(tenant);
  if (found == queues_.end()) return dropped;
  std::erase_if(found->second.waiting, [&](const IncomingRequest& incoming) {
    if (incoming.connection != connection) return false;
    waiting_bytes_.give_back(tenant, size_bytes(incoming.submit));
    if (!incoming.joins) dropped.push_back(incoming.engine_request_id());
    return true;
  });
  return dropped;
}

void ParserQueue::drop_all() {
  for (auto& [tenant, queue] : queues_) {
    std::erase_if(queue.waiting, [&](const IncomingRequest& incoming) {
      if (!incoming.joins) waiting_bytes_.give_back(tenant, size_bytes(incoming.submit));
      return !incoming.joins;
    });
  }
}

}  // namespace leasehold
