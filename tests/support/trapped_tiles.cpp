#include "tests/support/trapped_tiles.hpp"

#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "common/expects.hpp"
#include "tests/support/emulated_tiles.hpp"

namespace leasehold::testing {
namespace {

std::atomic<std::uint64_t> trapped = 0;

/// Saved registers in the order of their numbers in instructions.
constexpr std::array kRegisters = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};

enum class Prefix : std::uint8_t { None, X66, XF3, XF2 };

/// An instruction of the map 0F38 with a VEX prefix of three bytes and a ModRM byte. Source: Intel
/// SDM, volume 2, section 2.3.5.
struct Instruction {
  std::uint8_t opcode;
  Prefix prefix;
  bool has_memory;
  std::uint8_t reg;     ///< ModRM.reg: a tile, or a part of the opcode.
  std::uint8_t rm;      ///< ModRM.rm: a tile, unless there is memory.
  std::uint8_t second;  ///< VEX.vvvv
  std::uintptr_t base = 0;
  std::uintptr_t index = 0;  ///< Times its scale: the stride.
  std::size_t size_bytes = 5;
};

/// Reads the operand in memory, whose SIB byte and displacement begin at `at`.
void read_memory(const std::uint8_t* at, std::uint8_t mod, const std::uint8_t* vex,
                 const greg_t* registers, Instruction& to) {
  const bool has_sib = to.rm == 4;
  const unsigned extra_index = (vex[1] & 0x40) == 0 ? 8 : 0;
  const unsigned extra_base = (vex[1] & 0x20) == 0 ? 8 : 0;
  const auto value = [&](unsigned number) {
    return static_cast<std::uintptr_t>(registers[kRegisters[number]]);
  };
  unsigned base = to.rm;
  if (has_sib) {
    base = *at & 7;
    const unsigned index = (*at >> 3 & 7) + extra_index;
    if (index != 4) to.index = value(index) << (*at >> 6);
    ++at;
  }
  expects(mod != 0 || base != 5, "the operand has a base register");
  to.base = value(base + extra_base);
  std::int32_t displacement = 0;
  if (mod == 1) displacement = static_cast<std::int8_t>(*at);
  if (mod == 2) std::memcpy(&displacement, at, sizeof displacement);
  to.base += static_cast<std::uintptr_t>(std::intptr_t{displacement});
  to.size_bytes += (has_sib ? 1 : 0) + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

std::optional<Instruction> decode(const std::uint8_t* code, const greg_t* registers) {
  constexpr std::uint8_t kMap0F38 = 2;
  if (code[0] != 0xC4 || (code[1] & 0x1F) != kMap0F38) return std::nullopt;
  const std::uint8_t mod = code[4] >> 6;
  Instruction found{.opcode = code[3],
                    .prefix = static_cast<Prefix>(code[2] & 3),
                    .has_memory = mod != 3,
                    .reg = static_cast<std::uint8_t>(code[4] >> 3 & 7),
                    .rm = static_cast<std::uint8_t>(code[4] & 7),
                    .second = static_cast<std::uint8_t>(~code[2] >> 3 & 15)};
  if (found.has_memory) read_memory(code + 5, mod, code, registers, found);
  return found;
}

/// Calls `use.template operator()<n>()` for a tile n.
template <class Use>
void with_tile(std::uint8_t n, Use&& use) {
  [&]<int... kTile>(std::integer_sequence<int, kTile...>) {
    ((n == kTile ? use.template operator()<kTile>() : void()), ...);
  }(std::make_integer_sequence<int, 8>());
}

void multiply(const Instruction& i) {
  with_tile(i.reg, [&]<int kC> {
    with_tile(i.rm, [&]<int kA> {
      with_tile(i.second, [&]<int kB> { EmulatedTiles::multiply<kC, kA, kB>(); });
    });
  });
}

/// False for an instruction that HardwareTiles does not contain.
bool execute(const Instruction& i) {
  constexpr std::uint8_t kConfigure = 0x49, kMove = 0x4B, kMultiply = 0x5E;
  void* const memory = reinterpret_cast<void*>(i.base);
  if (i.opcode == kConfigure && i.prefix == Prefix::None && i.has_memory)
    EmulatedTiles::configure(*static_cast<const amx::TileConfig*>(memory));
  else if (i.opcode == kConfigure && i.prefix == Prefix::None)
    EmulatedTiles::release();
  else if (i.opcode == kConfigure && i.prefix == Prefix::XF2 && !i.has_memory)
    with_tile(i.reg, []<int kTile> { EmulatedTiles::zero<kTile>(); });
  else if (i.opcode == kMove && i.prefix == Prefix::XF2)
    with_tile(i.reg, [&]<int kTile> { EmulatedTiles::load<kTile>(memory, i.index); });
  else if (i.opcode == kMove && i.prefix == Prefix::XF3)
    with_tile(i.reg, [&]<int kTile> { EmulatedTiles::store<kTile>(memory, i.index); });
  else if (i.opcode == kMultiply && i.prefix == Prefix::XF2 && !i.has_memory)
    multiply(i);
  else
    return false;
  return true;
}

void on_illegal_instruction(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* code = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
  const std::optional<Instruction> instruction = decode(code, registers);
  if (!instruction || !execute(*instruction)) {
    std::signal(SIGILL, SIG_DFL);  // the instruction is repeated
    return;
  }
  ++trapped;
  registers[REG_RIP] += static_cast<greg_t>(instruction->size_bytes);
}

}  // namespace

std::uint64_t trapped_instructions() {
  return trapped;
}

TrappedTiles::TrappedTiles() {
  struct sigaction action{};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ensures(sigaction(SIGILL, &action, &before_) == 0, "the handler is installed");
}

TrappedTiles::~TrappedTiles() {
  ensures(sigaction(SIGILL, &before_, nullptr) == 0, "the earlier handler is restored");
}

}  // namespace leasehold::testing
