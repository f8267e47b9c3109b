#include "tests/support/plain_formats.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

namespace leasehold::testing {
namespace {

using Bytes = std::span<const std::byte>;
using Values = std::vector<double>;

int at(Bytes bytes, std::size_t i) {
  return std::to_integer<int>(bytes[i]);
}

/// sign · 2^(exponent - bias) · 1.mantissa, by the definition of IEEE 754.
double ieee(unsigned bits, int exponent_bits, int mantissa_bits) {
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double fraction = std::ldexp(bits & ((1u << mantissa_bits) - 1), -mantissa_bits);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

unsigned word(Bytes bytes, std::size_t i) {
  return static_cast<unsigned>(at(bytes, i) | at(bytes, i + 1) << 8);
}
double half(Bytes bytes, std::size_t i) {
  return ieee(word(bytes, i), 5, 10);
}
int signed_byte(Bytes bytes, std::size_t i) {
  return at(bytes, i) >= 128 ? at(bytes, i) - 256 : at(bytes, i);
}

/// Blocks of 32: first the low nibbles of all bytes, then the high ones. `fifth` is the offset of
/// the fifth bits, or 0.
Values nibbles(Bytes block, std::size_t fifth, std::size_t quants) {
  Values q;
  for (int shift : {0, 4})
    for (std::size_t i = 0; i < 16; ++i) q.push_back(at(block, quants + i) >> shift & 15);
  for (std::size_t i = 0; fifth != 0 && i < 32; ++i)
    q[i] += 16 * (at(block, fifth + i / 8) >> (i % 8) & 1);
  return q;
}

Values linear(Values q, double scale, double offset) {
  for (double& value : q) value = scale * value + offset;
  return q;
}

Values centred(Values q, double scale, int middle) {
  for (double& value : q) value = scale * (value - middle);
  return q;
}

Values q8_0(Bytes block) {
  Values q;
  for (std::size_t i = 0; i < 32; ++i) q.push_back(signed_byte(block, 2 + i));
  return centred(q, half(block, 0), 0);
}

/// Q2_K: two halves of 128; in each, four passes over the same 32 bytes, two bits at a time.
Values q2_k(Bytes block) {
  Values values;
  std::size_t sub = 0;
  for (std::size_t base : {16, 48})
    for (int shift : {0, 2, 4, 6})
      for (std::size_t first : {0, 16}) {
        const double scale = half(block, 80) * (at(block, sub) % 16);
        const double min = half(block, 82) * (at(block, sub) >> 4);
        ++sub;
        for (std::size_t i = 0; i < 16; ++i)
          values.push_back(scale * (at(block, base + first + i) >> shift & 3) - min);
      }
  return values;
}

/// Q3_K: the same order. The third bit is in byte i of 32, one bit further with each pass; if it is
/// set, 4 is not subtracted. The sixteen 6-bit scales form four groups of four: low bits in bytes 0
/// … 7 (groups 0, 1 in the low half; 2, 3 in the high half), high bits in bytes 8 … 11, two per
/// group.
Values q3_k(Bytes block) {
  const Bytes packed = block.subspan(96, 12);
  Values values;
  std::size_t sub = 0;
  int pass = 0;
  for (std::size_t base : {32, 64})
    for (int shift : {0, 2, 4, 6}) {
      for (std::size_t first : {0, 16}) {
        const std::size_t group = sub / 4, member = sub % 4;
        const int low = at(packed, (group % 2) * 4 + member) >> (group < 2 ? 0 : 4) & 15;
        const int high = at(packed, 8 + member) >> (2 * group) & 3;
        const double scale = half(block, 108) * (low + 16 * high - 32);
        ++sub;
        for (std::size_t i = first; i < first + 16; ++i) {
          const int taken_off = (at(block, i) >> pass & 1) != 0 ? 0 : 4;
          values.push_back(scale * ((at(block, base + i) >> shift & 3) - taken_off));
        }
      }
      ++pass;
    }
  return values;
}

/// The eight scales and minima of Q4_K and Q5_K. The 12 bytes are three rows of four:
///   s0 + top2(s4)   m0 + top2(m4)   low4(s4) + high4(m4)      and so on to s3, m3, s7, m7
struct Scales {
  double scale[8];
  double min[8];
};
Scales eight_scales(Bytes packed, double d, double dmin) {
  Scales scales{};
  for (std::size_t i = 0; i < 4; ++i) {
    const int first = at(packed, i), second = at(packed, i + 4), third = at(packed, i + 8);
    scales.scale[i] = d * (first % 64);
    scales.min[i] = dmin * (second % 64);
    scales.scale[i + 4] = d * (third % 16 + (first >> 6) * 16);
    scales.min[i + 4] = dmin * ((third >> 4) + (second >> 6) * 16);
  }
  return scales;
}

/// Q4_K and Q5_K: 32 bytes hold 64 elements, low nibbles first; the fifth bit of element i of a
/// sub-block is bit `sub-block` of byte i.
Values q45_k(Bytes block, std::size_t fifth, std::size_t quants) {
  const Scales scales = eight_scales(block.subspan(4, 12), half(block, 0), half(block, 2));
  Values values;
  for (std::size_t sub = 0; sub < 8; ++sub)
    for (std::size_t i = 0; i < 32; ++i) {
      int q = at(block, quants + sub / 2 * 32 + i);
      q = sub % 2 == 0 ? q % 16 : q / 16;
      if (fifth != 0 && (at(block, fifth + i) >> sub & 1) != 0) q += 16;
      values.push_back(scales.scale[sub] * q - scales.min[sub]);
    }
  return values;
}

/// Q6_K: two halves of 128 elements, each with 64 bytes of low nibbles and 32 bytes of high bits.
/// The four quarters read the low nibbles of bytes 0 … 31, then of 32 … 63, then the high nibbles
/// in the same order; each takes two bits of the same high bytes.
Values q6_k(Bytes block) {
  Values values(256);
  for (std::size_t part = 0; part < 2; ++part)
    for (std::size_t i = 0; i < 32; ++i) {
      const int a = at(block, 64 * part + i), b = at(block, 64 * part + 32 + i);
      const int high = at(block, 128 + 32 * part + i);
      const int q[4] = {a % 16 + high % 4 * 16, b % 16 + high / 4 % 4 * 16,
                        a / 16 + high / 16 % 4 * 16, b / 16 + high / 64 * 16};
      for (std::size_t quarter = 0; quarter < 4; ++quarter) {
        const double scale =
            half(block, 208) * signed_byte(block, 192 + 8 * part + 2 * quarter + i / 16);
        values[128 * part + 32 * quarter + i] = scale * (q[quarter] - 32);
      }
    }
  return values;
}

/// The values of the codes of IQ4_NL and IQ4_XS, and of MXFP4.
constexpr double kIq4[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                           1,    13,   25,  38,  53,  69,  89,  113};
constexpr double kMxfp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};

Values from_table(Values codes, double scale, const double (&table)[16]) {
  for (double& value : codes) value = scale * table[static_cast<std::size_t>(value)];
  return codes;
}

/// IQ4_XS: eight runs of 16 bytes, each as a block of 32; scales of 6 bits minus 32.
Values iq4_xs(Bytes block) {
  Values values;
  for (std::size_t sub = 0; sub < 8; ++sub) {
    const int low = at(block, 4 + sub / 2) >> (sub % 2 == 0 ? 0 : 4) & 15;
    const int high = static_cast<int>(word(block, 2)) >> (2 * sub) & 3;
    const double scale = half(block, 0) * (low + 16 * high - 32);
    const Values run = from_table(nibbles(block, 0, 8 + 16 * sub), scale, kIq4);
    values.insert(values.end(), run.begin(), run.end());
  }
  return values;
}

struct Format {
  std::size_t elements;
  std::size_t size_bytes;
  Values (*values)(Bytes block);
};

Format format_of(std::uint32_t number) {
  switch (number) {
    case 0:
      return {1, 4, [](Bytes b) { return Values{ieee(word(b, 0) | word(b, 2) << 16, 8, 23)}; }};
    case 1:
      return {1, 2, [](Bytes b) { return Values{half(b, 0)}; }};
    case 2:
      return {32, 18, [](Bytes b) { return centred(nibbles(b, 0, 2), half(b, 0), 8); }};
    case 3:
      return {32, 20, [](Bytes b) { return linear(nibbles(b, 0, 4), half(b, 0), half(b, 2)); }};
    case 6:
      return {32, 22, [](Bytes b) { return centred(nibbles(b, 2, 6), half(b, 0), 16); }};
    case 7:
      return {32, 24, [](Bytes b) { return linear(nibbles(b, 4, 8), half(b, 0), half(b, 2)); }};
    case 8:
      return {32, 34, q8_0};
    case 10:
      return {256, 84, q2_k};
    case 11:
      return {256, 110, q3_k};
    case 12:
      return {256, 144, [](Bytes b) { return q45_k(b, 0, 16); }};
    case 13:
      return {256, 176, [](Bytes b) { return q45_k(b, 16, 48); }};
    case 14:
      return {256, 210, q6_k};
    case 20:
      return {32, 18, [](Bytes b) { return from_table(nibbles(b, 0, 2), half(b, 0), kIq4); }};
    case 23:
      return {256, 136, iq4_xs};
    case 39:
      return {32, 17, [](Bytes b) {
                return from_table(nibbles(b, 0, 1), std::ldexp(1, at(b, 0) - 127), kMxfp4);
              }};
    case 30:
      return {1, 2, [](Bytes b) { return Values{ieee(word(b, 0), 8, 7)}; }};
    default:
      throw std::invalid_argument("no description of GGUF type " + std::to_string(number));
  }
}

}  // namespace

std::vector<double> plain_values(std::uint32_t number, const std::byte* bytes, std::size_t n) {
  const Format format = format_of(number);
  Values values;
  values.reserve(n);
  for (; values.size() < n; bytes += format.size_bytes) {
    const Values block = format.values({bytes, format.size_bytes});
    values.insert(values.end(), block.begin(), block.end());
  }
  return values;
}

}  // namespace leasehold::testing
