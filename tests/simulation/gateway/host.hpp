/// A modelled host: what it answers to a request, piece by piece, and how it fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "tests/simulation/gateway/text.hpp"
#include "tools/gateway/decide/text_events.hpp"

namespace leasehold::gateway::simulation {

enum class Power : std::uint8_t {
  Up,
  Frozen,    ///< It makes no progress; its connections stay.
  Unlinked,  ///< It runs; nothing leaves it, and what it sends is lost.
  Dead,      ///< Its connections are closed, and new ones are refused.
};

enum class Honesty : std::uint8_t {
  Honest,
  RepeatsPosition,
  SkipsPosition,
  UnknownChoice,
  BadMark,
  TwoMarks,
  LongLine,
  OnlyBeats,      ///< It sends beats and never a token.
  HidesIdentity,  ///< It reports the text's identity and computes with another one.
};

struct Host {
  IdentityIndex identity = 0;           ///< What it computes.
  IdentityIndex reported_identity = 0;  ///< What it reports of itself.
  Honesty honesty = Honesty::Honest;
  Power power = Power::Up;
  bool is_draining = false;
  bool is_refusing = false;  ///< It answers 503 with Retry-After.
};

/// What one production of a stream is.
enum class PieceKind : std::uint8_t { Beat, Group, Ending, Error, Lie };

struct Piece {
  PieceKind kind;
  std::string bytes;
};

/// One request as its host generates it.
class HostStream {
 public:
  /// `begins`: the end of the queue and of the prefill.
  HostStream(const Text& text, const Host& host, const EmittedTokens& emitted, TimePoint accepted,
             TimePoint begins, Duration gap);

  /// When the next piece is made. Nothing after the ending.
  std::optional<TimePoint> next_time() const;
  /// Makes the piece. `random` chooses among the choices.
  Piece make(TimePoint now, SeededRandom& random);
  /// The host continues after a pause: nothing is made up for.
  void resume(TimePoint now);

 private:
  Piece make_group(SeededRandom& random);
  std::optional<std::string> lie(std::uint32_t choice) const;
  bool is_complete() const;

  const Text& text_;
  IdentityIndex identity_;
  Honesty honesty_;
  std::vector<std::uint32_t> positions_;
  TimePoint next_token_;
  TimePoint next_beat_;
  Duration gap_;
  std::uint32_t groups_ = 0;
  bool has_ended_ = false;
};

}  // namespace leasehold::gateway::simulation
