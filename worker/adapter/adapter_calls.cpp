#include "worker/adapter/adapter_calls.hpp"

#include <memory>
#include <utility>

#include "common/random.hpp"

namespace leasehold {
namespace {

/// The broker answers `adapter.open` once the worker has mapped the extents.
constexpr Duration kTimeout = std::chrono::seconds(30);

std::optional<TenantId> tenant_or_shared(const TenantId& tenant) {
  if (tenant.value.empty()) return std::nullopt;
  return tenant;
}

Result<ResolvedAdapter> resolved_from(const control::Payload& reply) {
  wire::AdapterResolved answer = TRY(wire::AdapterResolved::from_json(reply.body));
  return ResolvedAdapter{.name = std::move(answer.adapter.value),
                         .version = answer.version,
                         .file = std::move(answer.file),
                         .owner = std::move(answer.tenant),
                         .is_pinned = answer.pinned};
}

}  // namespace

template <class Message, class T, class Parse>
void AdapterCalls::send(const Message& message, Then<T> then, Parse parse) {
  call_(
      std::string(message.kMethod), {.body = message.to_json(), .fds = {}},
      [loop = loop_, parse, then = std::move(then)](Result<control::Payload> reply) mutable {
        Result<T> answer = reply ? parse(*reply) : Result<T>(std::unexpected(reply.error()));
        loop->post([answer = std::move(answer), then = std::move(then)](Engine&) mutable {
          then(std::move(answer));
        });
      },
      kTimeout);
}

void AdapterCalls::resolve(const ResolveAdapter& asked, Then<ResolvedAdapter> then) {
  const wire::AdapterResolve message{.tenant = tenant_or_shared(asked.tenant),
                                     .adapter = {asked.name}};
  send(message, std::move(then), resolved_from);
}

void AdapterCalls::open(const OpenAdapterLease& asked, Then<LeaseId> then) {
  const wire::AdapterOpen message{.tenant = tenant_or_shared(asked.owner),
                                  .adapter = {asked.name},
                                  .version = asked.version,
                                  .digest = asked.content.digest.hex(),
                                  .size_bytes = asked.content.memory_bytes,
                                  .request_id = {mint_request_id()}};
  send(message, std::move(then), [](const control::Payload& reply) -> Result<LeaseId> {
    return TRY(wire::AdapterOpened::from_json(reply.body)).lease;
  });
}

void AdapterCalls::filled(LeaseId lease, Then<void> then) {
  send(wire::AdapterFilled{.lease = lease}, std::move(then),
       [](const control::Payload&) -> Result<void> { return {}; });
}

void AdapterCalls::close(LeaseId lease) {
  const wire::AdapterClose message{.lease = lease};
  call_(
      std::string(message.kMethod), {.body = message.to_json(), .fds = {}},
      [](const Result<control::Payload>&) {}, kTimeout);
}

}  // namespace leasehold
