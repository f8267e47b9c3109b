/// Passes an upload on while it arrives: POST /v1/files.
///
/// At most one piece of the body is in memory: the client is not read while the host does not take
/// what came before. An upload goes to one host. It is not kept, so it is never sent again: a host
/// that fails after its first byte fails the upload.
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/shared.hpp"

namespace leasehold::gateway {

/// Limit for the body of an upload, framing included. The host's quota of files is the smaller
/// limit.
inline constexpr std::uint64_t kMaxUploadBytes = 16ull << 30;
/// What an upload uses of its owner's share of bodies.
inline constexpr std::size_t kUploadBytes = 64 << 10;

bool is_upload(const http::Head& head);

/// The rest of a client's request, which was not read.
struct UnreadBody {
  http::Parser& parser;
  http::ReadBuffer& buffer;
};

/// Passes the body to a host that keeps files, and its answer back. If the host answers before the
/// end of the body, the rest is read and dropped, so that a client that sends first gets the
/// answer.
boost::asio::awaitable<void> answer_upload(Shared& shared, ClientExchange& client, UnreadBody body);

}  // namespace leasehold::gateway
