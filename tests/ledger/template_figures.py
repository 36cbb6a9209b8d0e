"""Prompt tokens of small chats by the chat templates of models in common use.

Rendered by the templates that llama.cpp's repository and axolotl have of these models, with all
settings of thinking and effort that a template knows; each number is the most of twelve tokenizers
of 32,000 to 152,000 tokens, with a model's own markers as one token each. SmolLM2 is as llama.cpp
and vLLM bill it. 0: the template refuses such a chat.
"""

from typing import Final

from tollhouse.ledger.bounds import TokenizerFamily

_BYTES, _NFC = TokenizerFamily.BYTES, TokenizerFamily.NFC

CHATS: Final = ("question", "system", "turns", "tool", "tools", "calls", "parallel")
"""Names in `tests.support.small_chats`, one for each number."""

FIGURES: Final = {
    "Apertus-8B": (_BYTES, 68, 22, 208, 78, 455, 201, 115),
    "Apriel-1.5": (_BYTES, 100, 101, 460, 370, 1183, 820, 508),
    "Bielik-11B-v3": (_BYTES, 14, 463, 314, 668, 1323, 958, 751),
    "ByteDance-Seed-OSS": (_BYTES, 23, 37, 623, 180, 812, 673, 339),
    "Cohere2MoE": (_NFC, 135, 141, 395, 170, 959, 1456, 634),
    "Command-A": (_NFC, 558, 595, 769, 558, 558, 618, 564),
    "Command-R-plus-tool-use": (_NFC, 0, 0, 0, 509, 0, 1149, 714),
    "Command-R7B": (_NFC, 558, 595, 769, 1323, 2061, 2550, 1728),
    "DeepSeek-R1-Distill-Qwen-32B": (_BYTES, 8, 9, 128, 8, 8, 245, 91),
    "DeepSeek-V3.1": (_BYTES, 6, 7, 166, 6, 6, 136, 49),
    "DeepSeek-V3.2": (_BYTES, 6, 7, 146, 401, 1120, 1160, 578),
    "DeepSeek-V4": (_BYTES, 5, 6, 145, 368, 1087, 1078, 547),
    "Devstral-Small": (_BYTES, 1376, 7, 1496, 1416, 2201, 1496, 1445),
    "EXAONE-4": (_NFC, 30, 45, 830, 263, 1101, 853, 406),
    "Falcon-H1": (_BYTES, 11, 18, 311, 169, 992, 292, 199),
    "functionary-medium-v3.1": (_BYTES, 38, 46, 378, 341, 2552, 581, 416),
    "functionary-medium-v3.2": (_BYTES, 115, 123, 535, 127, 524, 327, 186),
    "gemma-2-2b-it": (_BYTES, 11, 0, 311, 11, 11, 0, 0),
    "gemma-4-31B-it": (_BYTES, 29, 35, 449, 61, 682, 351, 172),
    "GigaChat3-10B": (_BYTES, 1048, 1057, 1448, 1080, 1456, 1470, 1149),
    "GLM-4.6": (_BYTES, 19, 23, 359, 174, 997, 374, 236),
    "GLM-4.7-Flash": (_BYTES, 10, 12, 130, 160, 984, 250, 187),
    "gpt-oss-120b": (_BYTES, 85, 98, 363, 135, 522, 463, 213),
    "granite-3.3-2B": (_BYTES, 201, 17, 501, 272, 4399, 392, 302),
    "granite-4.0": (_BYTES, 33, 17, 333, 187, 1011, 541, 297),
    "Hermes-3-tool-use": (_BYTES, 0, 0, 0, 255, 1334, 594, 363),
    "Hy3": (_BYTES, 27, 28, 407, 289, 1113, 1308, 537),
    "Jamba": (_BYTES, 12, 13, 232, 70, 1693, 360, 159),
    "Kimi-K2": (_BYTES, 31, 14, 269, 84, 907, 0, 0),
    "Kimi-K3": (_BYTES, 108, 121, 908, 180, 734, 1000, 415),
    "Laguna-S-2.1": (_BYTES, 52, 23, 312, 124, 948, 262, 160),
    "LFM2.5": (_BYTES, 11, 18, 311, 70, 893, 200, 101),
    "ling-3.0-flash": (_BYTES, 26, 29, 426, 221, 1042, 541, 298),
    "Llama-3.1-8B": (_BYTES, 52, 53, 392, 209, 3569, 509, 0),
    "Llama-4": (_BYTES, 15, 23, 355, 182, 3542, 482, 278),
    "MiniCPM5-1B": (_BYTES, 19, 26, 319, 222, 1046, 468, 294),
    "MiniMax-M2": (_BYTES, 41, 37, 541, 200, 946, 769, 301),
    "MiniMax-M3": (_BYTES, 234, 230, 854, 608, 1340, 1408, 784),
    "Ministral-3-14B-Reasoning": (_BYTES, 134, 7, 254, 176, 999, 256, 205),
    "Mistral-Nemo": (_BYTES, 4, 7, 124, 55, 878, 525, 234),
    "Mistral-Small-3": (_BYTES, 196, 7, 316, 196, 196, 0, 0),
    "Mistral-Small-3.2": (_BYTES, 556, 7, 676, 596, 1403, 831, 685),
    "muse-glimmer": (_BYTES, 77, 36, 375, 503, 1202, 1173, 771),
    "Nemotron-3-Nano-30B": (_BYTES, 19, 20, 359, 257, 931, 647, 365),
    "Nemotron-Nano-v2": (_BYTES, 41, 42, 801, 266, 991, 1056, 384),
    "Phi-3.5-mini-instruct": (_BYTES, 10, 17, 310, 10, 10, 70, 16),
    "Phi-4-reasoning": (_BYTES, 260, 14, 489, 260, 260, 300, 264),
    "Qwen2.5-7B": (_NFC, 34, 17, 334, 168, 992, 518, 281),
    "Qwen3-0.6B": (_NFC, 18, 25, 318, 154, 978, 494, 263),
    "Qwen3-Coder": (_NFC, 10, 17, 310, 268, 942, 598, 370),
    "Qwen3.5-4B": (_NFC, 18, 25, 318, 277, 1087, 667, 385),
    "Reka-Edge": (_BYTES, 10, 16, 250, 150, 974, 480, 252),
    "SmolLM2-135M": (_BYTES, 31, 16, 311, 31, 31, 151, 61),
    "SmolLM3-3B": (_BYTES, 287, 65, 587, 287, 287, 417, 321),
    "Solar-Open-100B": (_BYTES, 75, 84, 314, 340, 1062, 690, 444),
    "Spark2.5": (_BYTES, 18, 21, 218, 68, 800, 198, 99),
    "StepFun3.5-Flash": (_BYTES, 14, 21, 314, 232, 1046, 602, 317),
}
