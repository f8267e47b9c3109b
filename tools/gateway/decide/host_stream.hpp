/// Reads a continuable stream: the bytes that a host answers to a request with Leasehold-Stream
/// become groups, beats, an ending or a typed error. Pure.
///
/// A group is everything that one token produced. A reader takes a group as a whole or not at all,
/// so that two hosts' groups of one position hold the same bytes. Comment lines are the framing and
/// are not part of a group:
///
///     : t CHOICE POSITION TOKEN    the block that this line is in completes a group
///     : e                          the block completes the ending group, and the stream
///     : b                          a beat: the host works on the request
///     : a CHOICE SHA256            the version of the adapter under which a choice is generated
///     : x CODE RETRY_AFTER_MS      the block completes the stream with an error
///
/// A host is not trusted to keep this form. Memory: at most the limits below and one line.
/// Source: worker/http/README.md, "Continue a text on another host"; WHATWG HTML, section 9.2
/// (server-sent events).
/// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.hpp"

namespace leasehold::gateway {

using TokenId = std::int32_t;
/// The tokens of each choice, in the order of positions. Missing lists are empty.
using EmittedTokens = std::vector<std::vector<TokenId>>;

/// What one token produced.
struct TokenGroup {
  std::uint32_t choice = 0;
  /// Position in its choice, from 0. The tokens that the host was given count.
  std::uint32_t position = 0;
  TokenId token = 0;
  std::string bytes;  ///< Whole blocks of the stream; empty if the token produced no event.
};

/// A sign that the host works on the request.
struct Beat {};

/// The version of an adapter that computes the next tokens of a choice.
struct AdapterNamed {
  std::uint32_t choice = 0;
  std::string digest;  ///< 64 lower-case hex digits.
};

/// What follows the last token: the end of the stream, or the whole answer (AnswerForm::Document).
struct EndingGroup {
  std::string bytes;
};

/// The host ended the request with an error.
struct HostError {
  Error error;
  std::string bytes;  ///< The API's own error event; of a Document, its body, or empty.
};

using HostEvent = std::variant<TokenGroup, Beat, AdapterNamed, EndingGroup, HostError>;

enum class AnswerForm : std::uint8_t {
  Events,    ///< The client asked for a stream.
  Document,  ///< The client asked for none: groups are empty, and the ending has one document.
};

struct HostStreamLimits {
  std::uint32_t choices = 1;
  std::size_t max_line_bytes = 1 << 20;
  std::size_t max_group_bytes = 1 << 20;
  std::size_t max_ending_bytes = 4 << 20;
  std::size_t max_document_bytes = 16 << 20;  ///< Limit for a whole AnswerForm::Document.
};

class HostStreamParser {
 public:
  /// `known`: the tokens that the host was given; it continues after them.
  HostStreamParser(AnswerForm form, const HostStreamLimits& limits, const EmittedTokens& known);

  /// Reads the next bytes and appends what they complete. Bytes after the end are ignored.
  /// Errors: MalformedMessage for a stream of another form: a choice that the request does not
  /// have, a position that is not the next one of its choice, a group in a Document.
  /// MessageTooLarge beyond a limit. `events` then holds what was complete before; the parser reads
  /// no more.
  Result<void> read(std::string_view bytes, std::vector<HostEvent>& events);

  /// True after an EndingGroup, a HostError or a failed read.
  bool has_ended() const { return has_ended_; }

 private:
  enum class Mark : std::uint8_t { None, Token, Beat, Adapter, Ending, Failure };

  Result<void> read_line(std::string_view line, std::vector<HostEvent>& events);
  Result<void> read_comment(std::string_view line);
  Result<void> read_token_mark(std::string_view numbers);
  Result<void> read_adapter_mark(std::string_view words);
  Result<void> read_error_mark(std::string_view words);
  Result<void> end_block(std::vector<HostEvent>& events);
  Result<void> end_group(std::vector<HostEvent>& events);
  Result<void> append(std::string_view line);
  Result<void> end_stream(std::vector<HostEvent>& events);
  std::optional<std::string> document(std::string_view event) const;

  AnswerForm form_;
  HostStreamLimits limits_;
  std::vector<std::uint32_t> next_positions_;  // per choice
  std::string line_;                           // the beginning of a line
  std::string group_;                          // blocks since the last group, without comments
  bool block_has_lines_ = false;
  Mark mark_ = Mark::None;  // of this block
  TokenGroup marked_token_;
  AdapterNamed marked_adapter_;
  Error marked_error_{Errc::MalformedMessage, {}};
  bool has_ended_ = false;
};

}  // namespace leasehold::gateway
