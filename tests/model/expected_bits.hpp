/// The bits every CPU, backend and batch must give. They change with the written order of the
/// arithmetic (kernels/README.md, *Numerics*) or with a model file, and with nothing else.
#pragma once

#include <string_view>

namespace leasehold::testing {

/// bits_digest of the logits after each token of matrix_text, serial.
struct ExpectedBits {
  std::string_view model;  ///< "own", or a file of test_data_path("models/…").
  std::string_view kv_f16;
  std::string_view kv_f32;
};

inline constexpr ExpectedBits kExpectedBits[] = {
    {"own", "7d0876056104bc732de764343b7952b576ddf470646b2ee37fe5077846039b33",
     "365b4274b54d924fbb85fe45d3e58528ac438ac3faff048bdb7f07bf34bd184e"},
    {"stories260K-f32", "8a08fe54ea01949d069770a19acbe9eff8ed3ccd94fdc1fa81fab1a0929cebb6",
     "63888f4e701c7bd4b15449372041d712aadf920d4f5ceaf7082c6d6e598efbcc"},
    {"stories260K-f16", "e7c4e9db6d543131b2981f909c4215e186b2b25d9679b96cef855d16188197ce",
     "e339574791727972ee0f761ae28fc663a98d75006a35158f2d75b515c96bc6cb"},
    {"stories260K-q8_0", "5a5f6d1d100abfabe27acd6e29337e07b88a81b72c515d0c00d4b151a22c5f2a",
     "f4add4408acd306cdd985d333529d0d74b491a8b8a89f52d2783703730618a09"},
    {"stories260K-q4_0", "5289414bbac1e87220af360f918247002a6fa6a96dbdd62c39ab2418720e7cb7",
     "ebffdb087ade8bc9718f9aa98c2e1546b5c2bb67a32d03aec1892f43d8a51ee3"},
    {"kq-llama-bf16", "6d6a6860fffdc0ecb663b15664a139491c6bae67aef54cfa296d621111d5ceb6",
     "050b32c76d6312419107e586088e6e5aa6a2172c6395578b8201c3a9a515f2ea"},
    {"kq-llama-q4_1", "5421a959a950871851500a0d28cc5e1886c56fb742747af003f60f72bee489f4",
     "888afe50629fcaddba3fc07f1fb90095febaf4e35fa7ac332f94b26b4b442fcf"},
    {"kq-llama-q5_0", "6ba5b93d825f5eec7d34945d4ea8bce2a45fcb2921b7eadbad655cebe9ca2a15",
     "d220799da1aff878dd41b24cd58c9e59777111d51ac43d380a53d9b39310af13"},
    {"kq-llama-q5_1", "c032744bdac02b0f86fcc180d77437a5c1aeac40bbe1d2683431caea2cab06aa",
     "1853f601ead559127d4aa03b2130ecfb5de53b843602eba39b533c8db69ebb69"},
    {"kq-llama-q2_k", "82511d920e91837306b59344faf217f9ce7365c84f3f0c00610b6cae961fef67",
     "96bc864d084a78d60cae9306d5e75cccc823d734f2075d529ba2df7becff74ed"},
    {"kq-llama-q3_k_m", "f59e7a5e514900ea3ca5176cb1f3eb6b936a9b0f855dbe410e88e66e1cb55ff0",
     "0bc6910590b5fd09900ce26ac7b26ab87fda9d5fdc5f7bbef42b1b971e3efa36"},
    {"kq-llama-q4_k_m", "c63c14df560e77e1b97e82d35ad2d9278101d912c39ec238ae9dab6d6e8aff4f",
     "de0f3c41225f387a9f1ab781cfd75d9059adfde26cc767e87186e3218fd829c0"},
    {"kq-llama-q5_k_m", "f288c608211b3cfbc52aea14025244dcbe449dd8c95a9f02767d0fb929c5d0cf",
     "8d2e1cda903f22649e9648d41aae341a840c62079263bf2d0dd48d4e55ffaf1b"},
    {"kq-llama-q6_k", "2072a67611d9798173b17c8ac76ac74d97926e4df471df05d737cf06095b9bf0",
     "5d8a7e011e5e39f6fdf737f52d5c8c3cadbf622c18e6a5f5f7a167a4903bb7c8"},
};

/// Of 300 tokens of our own model, more than one partition of attention, with keys in F16.
inline constexpr std::string_view kExpectedLongText =
    "50a13eea3ebdd80a251a9262c3c2664a86ab9f383ffb11c72a3a94bde202d364";

}  // namespace leasehold::testing
