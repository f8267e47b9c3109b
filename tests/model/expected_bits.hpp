/// The bits that every CPU, backend and batch must give. They change only with the order of the
/// arithmetic (kernels/README.md, *Numerics*) or with a model file.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold::testing {

/// bits_digest of the logits after each token of matrix_text, serial.
struct ExpectedBits {
  std::string_view model;  ///< "own", a file of test_data_path("models/…"), or a family.
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
    {"kq-qwen2-q4_k_m", "3cc53c06789ed153df92ae4e2ad9a93f2e0053c1b3a1d50675677eb545971350",
     "71711fbc5c4eacc212a110d85fd925596d3c3b8302db37c34f3e6935ba41b5d8"},
    {"kq-qwen3-q4_k_m", "89169027dcf714379598e606f5773f92262effe3f051c84637ff6d1caacc59ea",
     "fa799f3942a006569683f32ceea048505a8d68a1d9ec463a76252b9376ac87b3"},
};

/// Likewise, in int8 arithmetic.
inline constexpr ExpectedBits kExpectedInt8Bits[] = {
    {"own", "09b9b49c40c10f206e5fb9179667284c20d4b88658897d7d4f075772bf8157ac",
     "2a491ccc89da36920912615f05bc3a14c8313dc4d923072bd32465384667bb24"},
    {"stories260K-q8_0", "a9aa1a50cc0d00f7ba9f8a75fa51f606e427cf8671a745657cff9bbf62e40d3a",
     "496379750a0ea6f63a06ffdb00fc32e2192c15178985415e37c9516614e225b6"},
    {"stories260K-q4_0", "59a8af5b708d99ab782360de2a4a32a7c11c42b18714583d5468ae01b57c54a0",
     "5c98510cda101de4b9288c5078018230cbf3ccde020b490e1835b4dcdcccf3ef"},
    {"kq-llama-q4_1", "33d52c67b046ad0b7b15dc2feed59a6db31258b57be06c5d03196b7f132dabaa",
     "75aac4f891d1819a58bff322e1038a0ecaa6f7bf63cea23504833be94dbae583"},
    {"kq-llama-q5_0", "68cc409022cb861b97b192fb4bb573b352699037e9211ba8f1596e061f4b770d",
     "f6f9a130bd5631fa11ebcc4d0fd8f51bcc501fe85aa541a57dd1407878e94d54"},
    {"kq-llama-q5_1", "01e6c447f7ca33c5f5d697a567fb459d2bb2e0459b3668b3d6d803ad6c6f4427",
     "6589a81cc9cec92a0a7c45ccfb99af44e026b12ce0a8821a2727c4c1ffa26d02"},
    {"kq-llama-q2_k", "e078965d1456176f38083fa3985d6768b67b982b88ced79766e124d53059d1ec",
     "401ef7207cc4a8ec2dab38aaa3e53df1327e7812bc8a370f62387c59bb8e8f56"},
    {"kq-llama-q3_k_m", "0425054d8fade3b3f9440c4d608085acc2677d8f7f263eb70157d5a72c8a522a",
     "51f69dd01fc3f55a73df6b1386bb10abc3379c98295cea0a48cd259653af2653"},
    {"kq-llama-q4_k_m", "69a14204cc8216645e31150e253ba11f861279b503e90858471dd699917e35d8",
     "afcf8b27057dc2f69876b0cc2e8736ee0ee6b5a80e74d0800ea9577f3a18dcba"},
    {"kq-llama-q5_k_m", "072f77ba2dbd4b43a5b5892bb26cca202f7beed7b96166c637f565b19d871f4a",
     "bbf8eaf07b8a7208f3de8ec773b1d2fc8856652ce5d3486d67243ecaac1c75cf"},
    {"kq-llama-q6_k", "9abc8594fd3ae77013a034662279e547f6fedbe952db46085f9724ad546bd1fc",
     "76b2699a61ae3b5137e00a293dc32c7b3099d3cb99f0d5c88940b445dcb40b76"},
    {"kq-qwen2-q4_k_m", "d15764d495749d6731f6972e7d95d9acb468097daaad772cae6059f7f098eab8",
     "3c782701987bcd726ab90154f1533d4d64680b82895e0e731054e5a3ef200501"},
    {"kq-qwen3-q4_k_m", "608fea0055c4c086b715459e5427411f9c4e0bb0ca69aaecfd2082eda5874a68",
     "4a1d4e0d62a999b0253cb0ebe81675b7b3b1209177e529fdb33cd28b7b7ff306"},
};

/// For the models of tests/support/generated_model.hpp, which are generated with integers and
/// correctly rounded operations, so the files are the same everywhere.
inline constexpr ExpectedBits kExpectedFamilyBits[] = {
    {"llama", "d8ea3aa105fb10acf380d838ac181fd09a958f9b7c831b8e48a985acacefbb14",
     "adf2cb0a6bad093f0eb06dd3f9e06bf9a835f604f39d66ef20cb9fd42f5c9d91"},
    {"llama, rope_freqs", "e73e0e1df933e8ad0ee29766436f583d8643c290236994fbff5fc5d2f8a0a325",
     "edf87ecc3c8f58f2f34657cd0f8852913feb57125709958c07fca55a55ab8307"},
    {"llama, linear", "fba103f63530509236d81f49f4764755bba31565cc59d1bd1ca80efa2997d6d2",
     "f65aa762c8ef690f538241e34b40353ee1df9a7297300f0317aedf3105f11e80"},
    {"llama, q4_k_m", "126bc00213cd7300595c9ee767dc806d04a74573acf75c24464019b7b4f0f734",
     "87471fcd0285df871fe2eb3fcf3fff2a79aac3b6d2a56325593f12776712a1d2"},
    {"mixtral", "742f6e145aab7cd125caff4898f26a3a5d69b6e8ced25110d3fc79141a0c127a",
     "8e24ba9cfc78b62df08fc4d118afab84f84b7fc9c465c0766eda2bdca344915e"},
    {"mixtral, q8_0", "ea9a6bcfd7d0e4eab0b506501fc4b1c7e079ab09faf88864a634c39b8af78814",
     "008a15c179d7f25739bcd9fbd8cd5955dff1817a8b3abe7cb5f2dffab6c67fd7"},
    {"qwen2", "8ee765143ab8267cc4c9f465b183ab112ce1bb7c3f297dee16b88c3184253026",
     "601138f2c7210be1d96a949aab5aab42baa2a34f199b284948b8a162f7095568"},
    {"qwen2, yarn", "211580fc005f9145cebbef53dd42487584097e6d1c4dfd48de4063a7fca57929",
     "45baead711cc3c1545ca0eb7335f674253c84080e45da988b4de020652a1de1b"},
    {"qwen3", "8f43593fe3d3879752296737e57e7eeb7ce62ac85e7e33c9cf4bc13d2c68ea26",
     "198aea593ef83972e531bff1b3042b758f0991106129cd31255e2d1641334693"},
    {"qwen2moe", "10f93bcd1fc5079d62769c98c88d2b003b40f98acc005d3ec0327a36ffd99004",
     "c87041aef739875e084d902046a27a254fcb15e8b9f47192c78af2b1a8f7afe6"},
    {"qwen2moe, q4_0", "5c496af6256a61ac9a8010301d587645f6dfc4569786a96dd0974b1387d683a3",
     "a314330a17d517e6bdc0ac596dfea010aaab373395ab910899dc0a3cedab07f9"},
    {"qwen3moe, in parts", "2b855b3228709affeed598fef100c746878a2fd79e5a03b37bd6bc3c3322c734",
     "468a7cf756b9fa7b126211ccc75a28c9a4876db6985f686b5cc72e25c2744b71"},
    {"glm4moe", "3f4afb721a44b3f3f45feee109c93d714557351204f6b45ec2b84c707142348d",
     "67661955a2e91acf0895dccab2300d286aa4562298f4a3d64c3bc900925286b1"},
    {"ernie4_5-moe, q4_0", "34665af39150e144fc9946828ce31cc49e7dd897ede9932d6c18773c498ad98a",
     "da59de8e5c27a182b482b8085cc2de7bcab279512645b3d4b3401b158c5c6da7"},
    {"glm4, iq4_nl", "b4d45f0cff2ec60ae1631079f308484f4357a5de8db7e2f80f546499c2e7c666",
     "5d0dadfd55fd508b22e9cc8aec6b262798266ea6dbc1e3f5f8b4a781c11117cf"},
    {"gemma4", "bdd3190b4f802a58cc121307b3643cf8d75bf2244b4e9688343b08f95054e2b2",
     "09e89bde92e76ae580c699ef5d2e9905e6a681980abef88311d466f7683f2d5e"},
    {"gemma4, q8_0", "260dc1b3c997724dcd0556d7ba506d423e412df4ed1c0c49e1f0ff987baa993f",
     "1adc7bac0f1050bffbd64aa7e2aa38a9b71c61fb20a4ebb594117b2a4e599989"},
    {"cohere2", "24b633738568708197a23720b3c233442a125b03c81bba7d55785244f36dd70c",
     "e1fb07765178a4ae0a7ec9a39b2c56597ae9c8c4045d80896b856b509df0b321"},
    {"cohere2, q4_0", "7884875baa7206835fff4928eb07675299467223d28e3182c3ca27a461d7bbc1",
     "d244d6f20eec6a45a06f35ee3fdb0500ec29caeadbfd1dc3013a99afa3a235fa"},
    {"minimax-m2, mxfp4", "2048ae33ccf676393bcd15a49a42e3929601dd50a40f6d19edefc88fab984b52",
     "31ab4056b8221f8c1a94e8b5d0cb6c81689c8b50cdbef5628c03c768e4efcb25"},
    {"deepseek2", "5c8d83d9a58e4264000a1a3b15b6c00074ad0cef5b51b4ab18f3f37f43e53649",
     "d86ec2b72cb5e11b677f9cbc30ec328406f1a83b8da4e74c92c147288d7f820c"},
    {"deepseek2, direct queries, yarn",
     "70ec50a16f13c485bfaf5b48779b2ac33e8669dbb99f1dfd06dfa085b12b92b3",
     "fea9adbc7d87c47306996d908c28250de49f7da8b59c3a5f55a8cd85ee683082"},
    {"deepseek2, q8_0", "3bdccc803554a9e64bf7bf48193a5a8fb0b9a8afe1816515655cd2794426eeb5",
     "2bdbcea2e57b0eba17ab356f38dda8ffc9c85cbdfdbb56e1e3420064574fc677"},
    {"deepseek2, fused heads, q8_0",
     "5e2fe0a20339afd91d1c44658bef61ac354c895e2d2f152db8007c701c9e1e46",
     "7bcfffa1e3dfbd75a85bfe8e731696b74992bbb67913053fa7cf9bec342f9f90"},
};

/// Likewise, in int8 arithmetic.
inline constexpr ExpectedBits kExpectedInt8FamilyBits[] = {
    {"llama, q4_k_m", "294bf8f5e2bed2a1d8389b6a148ccd2a93961a2a3d0e816a8d32e0136b68c9f7",
     "ccfd62f28d128547d41bb205dcc12bff7db293055e9f494590a3ded2b446f114"},
    {"mixtral, q8_0", "458000d3f22c8cd49e95801cd296de37d1508dd2d669f6c74d49627d8de6ab2c",
     "aea2e3d4a53a576ef6d63dbece507ab79e417283a7c459d799296572686b092f"},
    {"qwen2moe, q4_0", "71f9c1f60da713f8bd77aea595adcad5450625efd9fdce5ce3a74abaccb81666",
     "41d17c1280cd13e2e47c75a1deedb16c4921d11e1173a4d5a1fa54216961a030"},
    {"ernie4_5-moe, q4_0", "c93ce71c49e44a7716c9c21aafb0cefa6bbb004e5e933dc0b1110360df660202",
     "ce6c41cc0c7b0476428a8e0bb9d23f3430c0e82295b8199f986c5cba285d7dfd"},
    {"glm4, iq4_nl", "afee069fe527df09f4cbb34509e3675b50ab5792b90c12bd9b1e7c9dbc195d01",
     "5852e440788c43a3a2c5c94e89c9484de23844954c0d65efda29158bf0c97f5d"},
    {"gemma4, q8_0", "7401bfd4c5f29163da92a57b4fa62a248e458a52a15f09d75dfa961c072ce908",
     "451a37159e3ad820f7b9d339ec0dd6cd2d2293d944aca0886bf3282ccf0f696d"},
    {"cohere2, q4_0", "b3aede4abd90c41831f2a23beeb06477b607cb72b90326c18cb3a612b7b7a662",
     "dc80159090a37eb3f6f7ab0ec2329cacc2cb1ac6f282ff1a811534ec0f9333da"},
    {"minimax-m2, mxfp4", "3b1e228b21a2b6f6a1f37d3fc7511d27bb2596f176694481325bbaad2fe282b2",
     "8ee689d9c63533b515a186cd995a861e6dfbffdb6fddd267c5e1993535b798bc"},
    {"deepseek2, q8_0", "fcfe04777b84b8f1c14d56f189717fda63800af6ba0d10b01461ee1f74913128",
     "bdd37f03b3b00823e9ed00adbd097e740764045c94a447118185500b72f1ad4d"},
};

/// For the architectures of exact_test.cpp: models with fewer than 512 tokens, in int8 arithmetic
/// if they are quantised, otherwise in f32. The text is matrix_text_below(kFewestTokens,
/// kExactTokens).
inline constexpr std::int32_t kFewestTokens = 360;
/// Longer than the original contexts of 64 positions and two steps of the temperature.
inline constexpr std::uint32_t kExactTokens = 72;
inline constexpr ExpectedBits kExpectedArchitectureBits[] = {
    {"tiny-deepseek2-f32", "45e7017111fee17f574d34fa58f9d2e56e3eb82302ab65f8302e9b5cba0cb0e8",
     "dd4b817fe0953ca3458298512c11cfda2c10754202179dec7d596220aeb38b26"},
    {"tiny-deepseek2-q8_0", "1d0b0c8c1540df2e5772043077fea18a07cbe0a0cfd4783b972c2ba9d28dd84f",
     "5570dc4b4cf251fc61078f6f4eeef917c3866066f45f7cf564993142080f3a94"},
    {"wide-deepseek2-q4_k_m", "1d9962b993b1613f0f7e1edac19c26ccbe93365b10330a281d275b8538b83b86",
     "9f1aabca1b672b7d1abbfb8e014133eed124ec2b1949da3f7e2ccb15ed612ac2"},
    {"tiny-gemma2-f32", "d05057dad871b37b2e73f272729d963ca4107903b3eef3f61595a937b11310e9",
     "6528179992c2c7a1e377425943b1008ace31afbeb6c1665ace76524d3394dbda"},
    {"tiny-gemma3-f32", "8404968536230c4549573f45714d7eeb21e5c5b8893f1c13a3d8a9a6e7182c38",
     "ffbc5ad0bb0e3785f58f4d602c4efe68cecaa30047deeec25322dcaae53bb160"},
    {"tiny-gemma3-q8_0", "7fa16dff322f6c67925be61d0f2f898473902237ce3a618432868da51d83bb3c",
     "eda9f5e0fb6f754778a8e6baa7aac6545b67f635c6bcd4725e310658aac82a8e"},
    {"tiny-gemma4-e-f32", "42db403adfc14cae5cca063b998be78e6e160f7f16638b7f95bdbaa0d1686870",
     "2277a94984868f8869a9c292aa49d94f3e9bb397c839a2b16d2da184f11eb2aa"},
    {"tiny-gemma4-e-q8_0", "d48e99f6acf7bb0a36d507aee536c69b997e54f53d7601e6f3ab58f424c1c090",
     "76ed000b6c3488aa029b4a6bb46a18c5dc3ade114defdf0cf2378c8ed66b5f04"},
    {"tiny-gemma4-moe-f32", "bd948f7dd0fc3d4f37dbed7611e77ee55748ba303221ae100e7f2387c9f6f558",
     "a4043c6d7504e211cd2e9dbd994b7ef0dedfac1e6458c66ebf8a6159fa0aaeba"},
    {"wide-gemma4-e-q4_k_m", "6c4b530126f5e53b2616f6b186ad133f8a9d3f6bcbeb4f45dab9c3e4cd01c56a",
     "d3a08fbf2d063beeb8146ab952bd58a521a92073d55ad4a57bcfea33931997e1"},
    {"wide-gemma4-moe-q4_k_m", "0d17951f6417ee61b27c0b9f7cacc147362546ddc6b323ec42d878737f9ba27a",
     "ef26d5e10fcddc14960baf21287c29b698d3d9460fb8928a0e461712b57ed28c"},
    {"tiny-gpt-oss-f32", "9ec22957f53e8e1aa0e01ee3a665a5cc7c5d40837bd0d4ab9b419d36368bcebd",
     "8b188da3d9717f94d505c26be9ec88f76e3e51b07b7de18eac2872116090c7c7"},
    {"tiny-gpt-oss-mxfp4", "4d5e27b2afa3ce0320e2457ab089af90df826449b521ead8baa0ea4825f33254",
     "3de48c18c9f3f521d064790a8c259ef8bfa07c3d689eb64acd6a90054565e23e"},
    {"tiny-glm4moe-f32", "419fd81495e2b033b72eaf990d0acfc0e7f6b20e84035709da4e02a155fea3af",
     "583c07024db597cb29328a56dfaedf5927c18a519231a861b832b5c06cbb59bd"},
    {"tiny-granite-f32", "10ec613db036d636ffaf13b2a07dc6aee9e9240568e39e4263b89cb80d4bfa66",
     "1c2b98e1b7775c7db3bc35937e31204c71c67e1cb5392de87769ef96e399a813"},
    {"tiny-mistral3-f32", "3e73107729f15ffbb8cf3545eaa844a4d88167b42f3c04da2b6602b2c55f16c5",
     "7f6cbb3ec5d454c5f0d32fb243faf14f26bef56e4a9c2ae60504c378fcb6d0bd"},
    {"tiny-olmo2-f32", "05cd91d929214b62cfef8fc49ef03a2331d2693c997d6b16cd7e34ddd9cb151c",
     "34234b32e6a9f38b89cf611a828fb5ccc7ce629f22e3d4e80f973911e4795c1f"},
    {"tiny-phi3-f32", "cec068598753ca3c6547ebe6ff62d17efeb9f88e1aff4586d62b1015faeb3ead",
     "882fe23f68d93f9dae8959307240eb4e77df852aaa0bcc5de0a2fd7d9664de2c"},
    {"tiny-phi3-short-f32", "a9b20b673fac19e669649aa199d7c96dddb6a253d8eb92e5d787ad5c01114a4d",
     "ee05016933812293d1b394ca7f4ecf893a700e0d9ee73c5dd798f7275e3ddd30"},
    {"tiny-qwen3vl-f32", "5635ac90138f99fbb02c059c5b804f2ea7fbe7d21c453c1fe862a1765b659483",
     "727fe6dfffd3ad20fd364dcf8398468ac4a30642b523815e8659b04cc6240016"},
    {"tiny-smollm3-f32", "32571859fd6adeeb4f4761e64ba8e6d5113519bca0f25c724eb1efbd3913dda2",
     "86ec3fb8a6619d0c6e9917dbfdb799eab541146da4e10aa3b6796d377aee0011"},
    {"tiny-qwen35-f32", "b7aa2d436b57342e6447a2186d0261497d6c578a9cc82c4b84ba5564cffaf152",
     "99539634a208300da148928d088e097ad2bab67f6ea0d50a006d03d9c85b2203"},
    {"tiny-qwen35-q8_0", "2bdedf28e38cddb7d4c4244f25ac4ac48fcbb2c0a023c4fdd48afe43a443663d",
     "f56d7fc1f7c042e82ad29ebc489330889a4d2b816e9174161f2ec58c598e5c23"},
    {"wide-qwen35-q4_k_m", "3ab994e7d98fe8aadbc9db8722be2a03cc264c90c776182821debcb1ac37486b",
     "f98e5a03074353e501c51cf32e1cb382dff720a4aac4bcb86b1814edaf894f9a"},
    {"tiny-qwen35moe-q8_0", "955d9b591fad41aab40485941fdb228d385bff1c405f01f0a4902e40aeb87364",
     "8ace9e2ab4b4fc9271ed4fe2182f276cb828c03a8be2f65ac7931a62a6ed54bf"},
    {"wide-qwen35moe-q4_k_m", "066d056b782a65ecf357b220fec0ab83b35dfacacab7b72b68e3b0b4c46458fe",
     "471c95d60fd44a46414403d46772f655bd7b9cc222239ad920dc019e69a16bd2"},
    {"tiny-qwen3next-f32", "8093f29a2de09b6babde133eba397a71fac6edd2e94beea7cb45159a1f5029e1",
     "3b6c0fd18c4fd8b220b908d14ed48e1ebe807ffed46307d2b19a09182558e858"},
    {"wide-qwen3next-q4_k_m", "06632242281a7b500a45c6bc42cc560dadcfe3d0016beb08523fac5f98c9e691",
     "e70c5e11c59062d3bd9695f8a1d77e60dd70dc19d09c12d3ddd6852b1d3e2f9f"},
    {"tiny-lfm2-f32", "fa26009d641a2b6538e7e063dbd6c7ea8e861fde1171cdbfe20d090299e63c79",
     "7b69553ba1f64ca55b4351bfc83ed081d4abbe9968fa2aeb68e49b496337e250"},
    {"tiny-lfm2moe-f32", "ca547560ce40251d9db1b5fd6e143b8b7a033d120b52ca4d92c9becc546964f5",
     "b98e04f2533dd5a92af216248b72a2ef5a0cfbf5ce14825cb82746083d5d616e"},
    {"tiny-granitehybrid-f32", "c8bfe7a498d7990e21fbda13bfe2901a4291bcfbf3cad236235e5b5f60c4741b",
     "b148475489c850e04749cb46f6d38f842a02a6ed1a31927b72250ddec88e38f8"},
    {"tiny-nemotron_h_moe-f32", "86d90ce379535682923090f4fe1234b4e44b21e21f5f5eb3c15c8aee70c9c332",
     "10d5b196c850fa38fa8ff850bf74d93483078f555ec4098330628f3b0f785701"},
    {"wide-nemotron_h_moe-q4_k_m",
     "649c174d756b8c595e70042a954606f69f9f8c60203e9508dfb556d315cc3bf2",
     "9d0fcd837f74a927fc9b26380d39f91586f736a7920d793c89bf5a2f358ec922"},
    {"wide-llama-iq4_nl", "f6a5c88d4205e59262964cd8fbbdcaca4e16e8afb6080e029581e8c825a8df92",
     "07db8a60c1eab1d043fc780065f191fa34a704774f9e549ed94682e20f753833"},
    {"wide-llama-iq4_xs", "0f4f77a644a6b3035279e41d1eeab437f81f1376c85e180d4bef902b99c0a638",
     "6f27d61f21a13fcf29852030d31216015587b8b819db4921e7067d672da783bc"},
    {"wide-phi3-q4_k_m", "5a546c1106ffccc0f529b86073089b7a1d4bf26ab1257c287b1241ba3c950828",
     "54507dc5f37ddffd8fb72097f86df137d28853433228f6ad3003f16900db26f3"},
};

/// With keys and values in Q8_0, by the arithmetic of matrices.
struct ExpectedKvBits {
  std::string_view model;
  std::string_view f32;
  std::string_view int8;
};

inline constexpr ExpectedKvBits kExpectedKvQ8Bits[] = {
    {"kq-llama-q5_0", "4dd8ba3c80c5f234ffa9206ebb43634bffd69918956682c84cfe2a4a71e32fad",
     "8820e6714d40e55b062c21ca8e9435622e83eb0a0e28f2537b060ad183994ef6"},
    {"kq-llama-q4_k_m", "9716872505ddf00bc027293d2663b1b4367f340b66014ae8d7d2c8f92a5f692e",
     "8b7e74979a29c03d43e287c046824d4756c0738cb6c62d2c0486d26171dab93e"},
    {"kq-qwen2-q4_k_m", "d0d0774cb1b3acef565244013c23d0ace7807eb8876ebe387900d3cee77453ff",
     "cdc94f51915542a0e1d7ce9a94e24241532f27e854b4676f9f224a0c06bfa340"},
    {"kq-qwen3-q4_k_m", "2b712eec328ee9cfc0809e241035a5e7d71397138ee8190827ba875b64b68e48",
     "39ccafe58cd733e2ef98907730119e792c62468402c189ae8260cbf9dc97ef5e"},
};

/// For 300 tokens of the bundled model, more than one partition of attention, with keys in F16.
inline constexpr std::string_view kExpectedLongTextDigest =
    "50a13eea3ebdd80a251a9262c3c2664a86ab9f383ffb11c72a3a94bde202d364";

/// Likewise for kq-llama-q4_k_m, with keys in Q8_0.
inline constexpr std::string_view kExpectedLongKvQ8Digest =
    "8aacc6b0b39f9935e3f2868fd1262624812aefcca25a5f9e61585d53cd2b7b76";

}  // namespace leasehold::testing
