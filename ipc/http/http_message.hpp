/// Reads HTTP requests with Boost.Beast, for every HTTP server of this project.
///
/// Memory: a connection keeps at most kMaxHeadBytes of input that is not parsed yet. So the framing
/// of a request is bounded like its content: a head, empty lines, the size line of a chunk with its
/// extensions, the trailers. Errors: a lack of memory is thrown as std::bad_alloc within the
/// coroutine that reads, and ends that connection only.
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

#include "common/result.hpp"
#include "ipc/http/byte_stream.hpp"
#include "ipc/http/http_framing.hpp"

namespace leasehold::http {

inline constexpr std::uint32_t kMaxHeadBytes = 16 << 10;

/// Holds bytes that were read and are not parsed yet.
struct ReadBuffer : boost::beast::flat_buffer {
  ReadBuffer() : boost::beast::flat_buffer(kMaxHeadBytes) {}
};

using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

/// A head, or the answer that refuses the request. Without either the connection has ended.
struct RequestHead {
  std::optional<Head> head;
  std::optional<Answer> refused;
};

/// Reads one head; the parser is fresh, and the stream's timeout is set. `max_body_bytes` as in
/// refuse_head.
boost::asio::awaitable<RequestHead> read_request_head(Stream& stream, ReadBuffer& buffer,
                                                      Parser& parser, std::size_t max_body_bytes);
boost::asio::awaitable<RequestHead> read_request_head(ByteStream& stream, ReadBuffer& buffer,
                                                      Parser& parser, std::size_t max_body_bytes);

/// `is_whole`: the parser has the whole body. `refused`: the answer that refuses the request.
/// Without either the connection has ended.
struct RequestBody {
  bool is_whole = false;
  std::optional<Answer> refused;
};

/// Reads the body of a request whose head was read. All bytes after the head, framing included, are
/// at most `max_body_bytes` + kMaxHeadBytes. 413: the body, its framing, or one line of the framing
/// is longer. 400: the body is malformed, or ends too early.
boost::asio::awaitable<RequestBody> read_request_body(Stream& stream, ReadBuffer& buffer,
                                                      Parser& parser, std::size_t max_body_bytes);
boost::asio::awaitable<RequestBody> read_request_body(ByteStream& stream, ReadBuffer& buffer,
                                                      Parser& parser, std::size_t max_body_bytes);

/// Reads the next bytes of a body whose head was read: at least one, or none at its end. Precedes
/// or replaces read_request_body. `read`: the bytes so far, framing included, which are at most
/// `max_body_bytes` + kMaxHeadBytes. Errors: MessageTooLarge, BadRequest for a malformed body or
/// one that ends too early.
boost::asio::awaitable<Result<std::string>> read_body_piece(Stream& stream, ReadBuffer& buffer,
                                                            Parser& parser, std::uint64_t& read,
                                                            std::uint64_t max_body_bytes);
boost::asio::awaitable<Result<std::string>> read_body_piece(ByteStream& stream, ReadBuffer& buffer,
                                                            Parser& parser, std::uint64_t& read,
                                                            std::uint64_t max_body_bytes);

}  // namespace leasehold::http
