#include "tests/simulation/gateway/text.hpp"

#include <fmt/format.h>

namespace leasehold::gateway::simulation {

std::uint64_t Text::at(IdentityIndex identity, std::uint32_t choice, std::uint32_t position) const {
  return random_at(seed_,
                   (std::uint64_t{identity} << 48) + (std::uint64_t{choice} << 32) + position);
}

TokenId Text::token(IdentityIndex identity, std::uint32_t choice, std::uint32_t position) const {
  return static_cast<TokenId>(at(identity, choice, position) % 50'000);
}

bool Text::is_silent(std::uint32_t choice, std::uint32_t position) const {
  if (form_ == AnswerForm::Document) return true;
  return position > 0 && (at(0, choice, position) >> 32 & 3) == 0;
}

std::string Text::group(IdentityIndex identity, std::uint32_t choice,
                        std::uint32_t position) const {
  if (is_silent(choice, position)) return {};
  std::string events;
  if (position == 0) events = fmt::format("data: {{\"role\":{}}}\n\n", choice);
  if (at(0, choice, position) >> 36 & 1) events += "event: delta\n";
  return events + fmt::format("data: {{\"index\":{},\"at\":{},\"token\":{}}}\n\n", choice, position,
                              token(identity, choice, position));
}

std::string Text::framed_group(IdentityIndex identity, std::uint32_t choice,
                               std::uint32_t position) const {
  std::string framed = group(identity, choice, position);
  const bool in_last_block = at(identity, choice, position) >> 40 & 1;
  if (in_last_block && !framed.empty()) framed.pop_back();
  return framed +
         fmt::format(": t {} {} {}\n\n", choice, position, token(identity, choice, position));
}

std::string Text::ending(IdentityIndex identity) const {
  if (form_ == AnswerForm::Document) return fmt::format("{{\"by\":{}}}", identity);
  return fmt::format("data: {{\"finish\":{}}}\n\ndata: [DONE]\n\n", identity);
}

std::string Text::framed_ending(IdentityIndex identity) const {
  if (form_ == AnswerForm::Document)
    return fmt::format("event: answer\ndata: {}\n\n: e\n\n", ending(identity));
  return ending(identity) + ": e\n\n";
}

}  // namespace leasehold::gateway::simulation
