/// Reads HTTP requests. The part of Boost.Beast that every HTTP server here shares.
///
/// Memory: a connection keeps at most kMaxHeadBytes that are not parsed yet. So the framing of a
/// request is bounded like its content: a head, empty lines, the size line of a chunk with its
/// extensions, the trailers. Errors: memory that is missing is thrown within the coroutine that
/// reads, as std::bad_alloc, and ends that connection only.
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

/// What was read and is not parsed yet.
struct ReadBuffer : boost::beast::flat_buffer {
  ReadBuffer() : boost::beast::flat_buffer(kMaxHeadBytes) {}
};

using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

/// A head, or the answer to one that must not be read on; neither: the connection ended.
struct RequestHead {
  std::optional<Head> head;
  std::optional<Answer> refused;
};

/// Reads one head; the parser is fresh, and the stream's timeout is set. `max_body_bytes` as in
/// refuse_head.
boost::asio::awaitable<RequestHead> read_request_head(Stream& stream, ReadBuffer& buffer,
                                                      Parser& parser, std::size_t max_body_bytes);

/// The parser has the whole body, or it must not be read on; neither: the connection ended.
struct RequestBody {
  bool is_whole = false;
  std::optional<Answer> refused;
};

/// Reads the body of a request whose head was read. Its framing counts: all bytes from the head to
/// the end of the request are at most `max_body_bytes` and kMaxHeadBytes together. 413: the body,
/// its framing, or one line of that is longer. 400: the body is malformed, or ends too early.
boost::asio::awaitable<RequestBody> read_request_body(Stream& stream, ReadBuffer& buffer,
                                                      Parser& parser, std::size_t max_body_bytes);

}  // namespace leasehold::http
