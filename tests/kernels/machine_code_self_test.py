"""Shows that machine_code.py finds every kind of fault and overrun, and nothing where there is none."""

import unittest

import machine_code

HEADER = "Fatbin elf code:\n================\narch = sm_90\ncode version = [1,8]\n"
APPLY = "_ZN6distro4cuda59_GLOBAL__N__0123abcd_8_apply_cu_89abcdef_123411ApplyKernelENS0_14ApplyArgumentsE"
ELEMENTS = "_ZN6distro4cuda40_GLOBAL__N__0_18_deltas_cu_020CompressDeltasKernelILb0ELb1EEEvNS0_23CompressDeltasArgumentsE"


def kernels(*instructions, symbol=APPLY, local=0):
    resources = HEADER + f"\nResource usage:\n Common:\n  GLOBAL:8192\n Function {symbol}:\n"
    resources += f"  REG:40 STACK:0 SHARED:512 LOCAL:{local} CONSTANT[0]:600 TEXTURE:0 SURFACE:0 SAMPLER:0\n"
    code = HEADER + f"\n\tcode for sm_90\n\t\tFunction : {symbol}\n\t.headerflags\t@\"EF_CUDA_SM90\"\n"
    for i, text in enumerate(instructions):
        code += f"        /*{16 * i:04x}*/                   {text} ;     /* 0x00000a00ff017b82 */\n"
        code += " " * 60 + "/* 0x000fe20000000800 */\n"
    return machine_code.parse(resources, code)


PLAIN = ("FMUL R0, R1, R2", "@!P0 FADD R0, R0, -R3", "EXIT", "BRA 0x30", "NOP")


class MachineCodeTest(unittest.TestCase):
    def test_reads_registers_memory_and_instructions(self):
        (key, kernel), = kernels(*PLAIN).items()
        self.assertEqual(key, ("sm_90", "Apply"))
        self.assertEqual((kernel.registers, kernel.shared, kernel.local), (40, 512, 0))
        self.assertEqual((kernel.instructions, kernel.code), (4, 80))
        self.assertEqual(list(kernels(*PLAIN, symbol=ELEMENTS)), [("sm_90", "CompressDeltas, elements, whole blocks")])

    def test_plain_code_has_no_fault(self):
        self.assertEqual(list(machine_code.faults(kernels(*PLAIN))), [])
        self.assertEqual(list(machine_code.faults(kernels("HFMA2.MMA R2, -RZ, RZ, 0, 0.5"))), [], "a constant")
        self.assertEqual(list(machine_code.faults(kernels("F2I.FTZ.U32.TRUNC.NTZ R3, R2"))), [], "an integer division")

    def test_finds_contraction_flushing_and_spills(self):
        for text, part in (
            ("@P1 FFMA R0, R1, R2, R3", "1 FFMA"),
            ("DFMA R0, R2, R4, R6", "1 DFMA"),
            ("FADD.FTZ R0, R1, R2", "flushes denormals"),
            ("STL [R1], R0", "local memory"),
        ):
            found, = machine_code.faults(kernels(text))
            self.assertIn(part, found)
            self.assertIn("Apply, sm_90", found)
        found, = machine_code.faults(kernels(*PLAIN, local=16))
        self.assertIn("16 bytes of local memory", found)

    def test_finds_what_exceeds_the_table(self):
        one = kernels(*PLAIN)
        self.assertEqual(list(machine_code.overruns(one, {("sm_90", "Apply"): (40, 512, 4)})), [])
        for budget, part in (
            ((39, 512, 4), "40 registers"),
            ((40, 511, 4), "512 bytes"),
            ((40, 512, 3), "4 instructions"),
        ):
            found, = machine_code.overruns(one, {("sm_90", "Apply"): budget})
            self.assertIn(part, found)
        found, = machine_code.overruns(one, {})
        self.assertIn("has no budget", found)
        budget = {("sm_90", "Apply"): (40, 512, 4), ("sm_90", "Feedback"): (1, 1, 1), ("sm_80", "Feedback"): (1,) * 3}
        found, = machine_code.overruns(one, budget)
        self.assertIn("is not in the archive", found)

    def test_budgets_are_what_the_table_says(self):
        one = kernels(*PLAIN)[("sm_90", "Apply")]
        other = kernels("EXIT")[("sm_90", "Apply")]
        all_of_them = {("sm_80", "Apply"): one, ("sm_90", "Apply"): one, ("sm_100", "Apply"): other}
        page = f"text\n<!-- table: machine_code -->\n{machine_code.table(all_of_them)}\n<!-- end -->\n"
        self.assertEqual(
            machine_code.budgets(page),
            {("sm_80", "Apply"): (40, 512, 4), ("sm_90", "Apply"): (40, 512, 4), ("sm_100", "Apply"): (40, 512, 1)},
        )


if __name__ == "__main__":
    unittest.main()
