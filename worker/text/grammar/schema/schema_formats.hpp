/// Patterns for the formats of JSON schema that are regular.
#pragma once

#include <string_view>

namespace leasehold {

/// The pattern of the whole text, or empty for a format that is not checked.
///
/// Checked formats: date time date-time duration uuid email idn-email hostname idn-hostname ipv4
/// ipv6 uri uri-reference iri iri-reference json-pointer relative-json-pointer. The patterns are
/// narrower than the standards: an e-mail address has no quoted local part and no address literal,
/// the host of a URI is a name, an IPv4 address or empty, and iri and idn-… accept only ASCII.
std::string_view pattern_of_format(std::string_view format);

}  // namespace leasehold
