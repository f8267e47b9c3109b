/// Reads the heads of HTTP requests. The part of Boost.Beast that every HTTP server here shares.
///
/// Threads: the one that runs the stream's context.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

#include "ipc/http/http_framing.hpp"

namespace leasehold::http {

inline constexpr std::uint32_t kMaxHeadBytes = 16 << 10;

using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

/// A head, or the answer to one that must not be read on; neither: the connection ended.
struct RequestHead {
  std::optional<Head> head;
  std::optional<Answer> refused;
};

/// Reads one head; the parser is fresh, and the stream's timeout is set. `max_body_bytes` as in
/// refuse_head.
boost::asio::awaitable<RequestHead> read_request_head(Stream& stream,
                                                      boost::beast::flat_buffer& buffer,
                                                      Parser& parser, std::size_t max_body_bytes);

}  // namespace leasehold::http
