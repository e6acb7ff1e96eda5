// Made by scripts/generate_basis.py. Do not edit.
// Entry j: sqrt(2/64) * cos(pi*j/128), j = 0..64, correctly rounded to f64, and times 2^13 rounded to an integer.
#pragma once

#include <cstdint>

namespace distro {

inline constexpr double kQuarterWave[65] = {
    0x1.6a09e667f3bcdp-3, 0x1.69edfc686963bp-3, 0x1.699a42b7bce27p-3, 0x1.690ec63f1beabp-3,
    0x1.684b9c80f1a8bp-3, 0x1.6750e39595a5ap-3, 0x1.661ec226a7bbbp-3, 0x1.64b5676919d30p-3,
    0x1.63150b15e8536p-3, 0x1.613ded6182691p-3, 0x1.5f3056f1e3716p-3, 0x1.5cec98d35f143p-3,
    0x1.5a730c6c21c67p-3, 0x1.57c4136e67a12p-3, 0x1.54e017c96baeap-3, 0x1.51c78b9911fffp-3,
    0x1.4e7ae9144f0fcp-3, 0x1.4afab27a4f286p-3, 0x1.474771fe60b6ap-3, 0x1.4361b9b2a4a09p-3,
    0x1.3f4a237187eafp-3, 0x1.3b0150c60a24fp-3, 0x1.3687ead2d444fp-3, 0x1.31dea23823cb1p-3,
    0x1.2d062ef88e319p-3, 0x1.27ff505ca0dcdp-3, 0x1.22caccd561eb3p-3, 0x1.1d6971ddb671bp-3,
    0x1.17dc13dab2dd6p-3, 0x1.12238dfada5bcp-3, 0x1.0c40c21452580p-3, 0x1.063498820f420p-3,
    0x1.0000000000000p-3, 0x1.f347db0c7b1d9p-4, 0x1.e642b84688ffdp-4, 0x1.d8f299aa7c4fbp-4,
    0x1.cb598cc4beea0p-4, 0x1.bd79aa60c7172p-4, 0x1.af55163650cc8p-4, 0x1.a0edfe94e7bb8p-4,
    0x1.92469c0dcf32dp-4, 0x1.8361311c551b0p-4, 0x1.744009cc9d910p-4, 0x1.64e57b60f4e28p-4,
    0x1.5553e3f5b5e58p-4, 0x1.458daa23d2e11p-4, 0x1.35953ca20f6f6p-4, 0x1.256d11e4f9f6dp-4,
    0x1.1517a7bdb3895p-4, 0x1.049782f795275p-4, 0x1.e7de5de983226p-5, 0x1.c6427a9365f8cp-5,
    0x1.a4608aafa8527p-5, 0x1.823dc7ce68f99p-5, 0x1.5fdf757ecdca0p-5, 0x1.3d4ae07f36dbap-5,
    0x1.1a855dec071b5p-5, 0x1.ef2894da4528dp-6, 0x1.a8fa12c485c2fp-6, 0x1.628a081c84d08p-6,
    0x1.1be35182fe5aap-6, 0x1.aa21a80dd8c26p-7, 0x1.1c3af6eee187ap-7, 0x1.1c50e2d2d2b76p-8,
    0x0.0p+0};

inline constexpr int16_t kQuarterWaveQ13[65] = {
    1448, 1448, 1446, 1444, 1441, 1437, 1432, 1427, 1420, 1413, 1405, 1396, 1386, 1375, 1364, 1351,
    1338, 1324, 1309, 1294, 1277, 1260, 1242, 1223, 1204, 1184, 1163, 1142, 1119, 1097, 1073, 1049,
    1024, 999, 973, 946, 919, 891, 863, 834, 805, 775, 745, 714, 683, 651, 619, 587,
    554, 521, 488, 454, 420, 386, 352, 317, 283, 248, 212, 177, 142, 107, 71, 36,
    0};

}  // namespace distro
