"""Shows that structure_test.py finds every kind of violation of rules.py, and nothing where there is none."""

import pathlib
import tempfile
import unittest

import names_of_tests
import rules
import structure_test as checks

# A header of each library as a dependency file names it, a library, a symbol.
SAMPLES = {
    "torch": ("torch-include/ATen/core/Tensor.h", "libtorch_cpu.so", "_ZN2at4_ops3addERKNS_6TensorE"),
    "cuda": ("/usr/local/cuda/include/cuda_runtime.h", "libcudart.so.13", "cudaMalloc"),
    "grpc": ("/usr/include/grpcpp/server.h", "libgrpc++.so.1.51", "_ZN4grpc13ServerBuilderC1Ev"),
    "prometheus": ("/usr/include/prometheus/counter.h", "libprometheus-cpp-core.so.1.0", "_ZN10prometheus7CounterC1Ev"),
    "boost": ("/usr/include/boost/asio.hpp", "libboost_system.so.1.74.0", None),
    "cli11": ("/usr/include/CLI/CLI.hpp", "libCLI11.so", None),
    "googletest": ("/usr/include/gtest/gtest.h", "libgtest.so.1.12.1", None),
}


def inside(unit, folder):
    return unit == folder or unit.startswith(folder + "/")


class RulesTest(unittest.TestCase):
    def test_rows_name_only_rows(self):
        for unit, uses in rules.USES.items():
            for used in uses.split():
                self.assertIn(used, rules.USES, f"row {unit}")

    def test_rows_are_folders(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        for unit in rules.USES:
            self.assertTrue((root / unit).is_dir(), unit)

    def test_units_do_not_use_each_other(self):
        for unit in rules.USES:
            for used in checks.may_use(unit) - {unit}:
                self.assertNotIn(unit, checks.may_use(used), f"{unit} and {used}")

    def test_table_keeps_what_must_never_be(self):
        for folder, forbidden in rules.NEVER:
            for unit in rules.USES:
                if inside(unit, folder):
                    bad = [used for used in checks.may_use(unit) if inside(used, forbidden)]
                    self.assertEqual(bad, [], f"{unit} reaches {forbidden}")

    def test_doors_stay_where_they_are(self):
        for unit in ("server", "server/round", "server/service", "kernels", "kernels/cpu", "common/net/rpc",
                     "worker/rules", "common/client/member", "worker/data", "worker/plan", "tools/distroctl"):
            self.assertFalse(checks.allows(rules.OUTSIDE["torch"].seen_in, unit), f"torch in {unit}")
        for unit in ("server/round", "server/log", "server/session", "kernels", "common/method", "worker/model"):
            self.assertFalse(checks.allows(rules.OUTSIDE["grpc"].seen_in, unit), f"grpc in {unit}")
        for unit in ("server", "server/service", "kernels/replica", "worker/rules"):
            self.assertFalse(checks.allows(rules.OUTSIDE["cuda"].seen_in, unit), f"cuda in {unit}")


class ViolationTest(unittest.TestCase):
    def test_forbidden_uses_alone_are_found(self):
        for unit in rules.USES:
            for used in rules.USES:
                allowed = any(inside(used, name) for name in checks.may_use(unit)) and \
                    used not in rules.NOT_INSIDE.get(unit, "").split()
                found = checks.judge_project(f"{unit}/a.cc", f"{used}/b.h")
                self.assertEqual(found == [], allowed, f"{unit} -> {used}: {found}")

    def test_libraries_are_found_outside_their_doors(self):
        for name, (header, library, symbol) in SAMPLES.items():
            outside = rules.OUTSIDE[name]
            for unit in rules.USES:
                seen, named = checks.allows(outside.seen_in, unit), checks.allows(outside.named_in, unit)
                source = f"{unit}/a.cc"
                self.assertEqual(checks.judge_outside(source, header, named=False) == [], seen, f"{unit} sees {name}")
                self.assertEqual(checks.judge_outside(source, header, named=True) == [], named, f"{unit} names {name}")
                self.assertEqual(checks.judge_library("program", unit, library) == [], seen, f"{unit} links {name}")
                if symbol:
                    self.assertEqual(checks.judge_symbol("lib.a", unit, symbol) == [], seen, f"{unit} needs {name}")

    def test_libraries_have_samples(self):
        self.assertEqual(set(SAMPLES), set(rules.OUTSIDE))

    def test_folder_without_a_row_is_found(self):
        self.assertTrue(checks.judge_project("common/new_folder/a.cc", "common/base/log.h"))
        self.assertTrue(checks.judge_project("server/options/options.cc", "elsewhere/log.h"))
        header, library, _ = next(iter(SAMPLES.values()))
        self.assertRegex(checks.judge_outside("elsewhere/a.cc", header, named=True)[0], "^elsewhere/a.cc: its folder has no row")
        self.assertEqual(checks.judge_library("program", None, library), [], "its sources have the complaint")

    def test_longest_name_that_fits_counts(self):
        self.assertEqual(checks.unit_of("server/options/options.cc"), "server/options")
        self.assertEqual(checks.unit_of("server/main.cc"), "server")
        self.assertTrue(checks.judge_project("server/options/options.h", "server/service/call_checks.h"))

    def test_tests_use_what_they_mirror(self):
        self.assertEqual(checks.judge_project("tests/common/method/codec/gap_codec_test.cc", "common/method/codec/gap_codec.h"), [])
        self.assertEqual(checks.judge_project("tests/common/method/codec/gap_codec_test.cc", "tests/testing/golden.h"), [])
        self.assertTrue(checks.judge_project("tests/common/method/codec/gap_codec_test.cc", "common/net/rpc/status.h"))
        self.assertTrue(checks.judge_project("tests/server/round/round_test.cc", "worker/model/model.h"))
        self.assertTrue(checks.judge_project("common/method/codec/gap_codec.cc", "tests/testing/golden.h"))

    def test_includes_are_read_from_the_text(self):
        text = '#include <vector>\n#include "worker/model/model.h"\n  #  include <grpcpp/grpcpp.h>\n#include "distro/v1/run.pb.h"\n'
        found = checks.check_includes("server/round/round.cc", text)
        self.assertEqual(len(found), 2, found)
        self.assertEqual(checks.check_includes("server/round/round.cc", '#include "distro/v1/run.pb.h"\n'), [])
        self.assertTrue(checks.check_includes("kernels/cpu/a.cc", '#include "distro/v1/run.pb.h"\n'))
        self.assertTrue(checks.check_includes("server/round/round.cc", '#include "distro/v1/admin.grpc.pb.h"\n'))

    def test_waits_by_the_calendar_are_found(self):
        self.assertTrue(checks.check_waits("server/round/shared_run.cc", "changed_.WaitWithTimeout(&mu_, left);\n"))
        self.assertTrue(checks.check_waits("server/round/shared_run.cc", "mu_.AwaitWithDeadline(condition, end);\n"))
        self.assertTrue(checks.check_waits("server/round/shared_run.cc", "done_.WaitForNotificationWithTimeout(left);\n"))
        self.assertEqual(checks.check_waits("tests/testing/gate.h", "mu_.AwaitWithTimeout(condition, left);\n"), [])
        self.assertEqual(checks.check_waits("server/round/shared_run.cc", "changed_.WaitFor(&mu_, left, done);\n"), [])

    def test_opened_files_are_found(self):
        for text in ("#include <fcntl.h>\n", "#include <fstream>\n", 'FILE* f = fopen(name, "r");\n', "std::ifstream in(name);\n"):
            self.assertTrue(checks.check_openers("server/log/run_store.cc", text), text)
            self.assertEqual(checks.check_openers("common/base/file_calls.cc", text), [])
            self.assertEqual(checks.check_openers("tests/server/log/disk_test.cc", text), [])
        self.assertEqual(checks.check_openers("server/log/run_store.cc", "DISTRO_ASSIGN_OR_RETURN(file, OpenToRead(name));\n"), [])

    def test_names_of_methods_are_found(self):
        for text in ("if (config.method() == v1::METHOD_DELTAS) {", "return step.has_deltas();", "step.deltas().caps()", "&method == &Deltas()"):
            self.assertEqual(len(checks.check_method_names("worker/train/trainer.cc", text)), 1)
            for place in ("common/method/methods.cc", "worker/rules/update_rule.cc", "tools/distroctl/plan.cc", "tests/a_test.cc"):
                self.assertEqual(checks.check_method_names(place, text), [])
        self.assertEqual(checks.check_method_names("server/log/same_run.cc", "if (asked.method() == v1::METHOD_UNSPECIFIED)"), [])

    def test_unseen_headers_are_found(self):
        for source in ("kernels/basis.cc", "kernels/cpu/deltas_compress.cc", "kernels/cuda/gpu.cc"):
            self.assertEqual(len(checks.judge_unseen(source, "proto/distro/v1/run.pb.h")), 1)
        self.assertEqual(checks.judge_unseen("kernels/replica/replica.cc", "proto/distro/v1/run.pb.h"), [])

    def test_names_of_tests_without_a_verb_are_found(self):
        for name in ("AnUpdateIsRefused", "WhatIsLate", "A2", "EveryOne"):
            for macro in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST"):
                self.assertEqual(len(names_of_tests.judge("tests/a_test.cc", f"{macro}(RoundTest,\n{name}) {{\n")), 1, name)
        for name in ("RefusesLateUpdate", "Answers", "ThenStops", "ItemizesBytes"):
            self.assertEqual(names_of_tests.judge("tests/a_test.cc", f"TEST(RoundTest, {name}) {{\n"), [])
        for name, complaints in (("a_late_update", 1), ("the", 1), ("refuses_late_update", 0), ("answers", 0)):
            self.assertEqual(len(names_of_tests.judge("tests/a_test.py", f"    def test_{name}(self):\n")), complaints, name)

    def test_dependencies_are_read_from_ninja(self):
        text = "a/b.cc.o: #deps 2, deps mtime 1 (VALID)\n    ../common/a.cc\n    /usr/include/x.h\n\nc.o: #deps 0, deps mtime 1 (VALID)\n"
        self.assertEqual(checks.parse_ninja_deps(text), {"a/b.cc.o": ["../common/a.cc", "/usr/include/x.h"], "c.o": []})


class TreeTest(unittest.TestCase):
    """A made-up tree with one violation each."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("build/compile_commands.json",
                   f'[{{"file": "{self.root}/server/round/round.cc", "command": "c++ -o server/round.cc.o -c round.cc"}}]')
        self.write("server/round/round.cc", "")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def tree(self, ninja_deps=""):
        tree = checks.Tree(self.root, self.root / "build", "ninja")
        tree.run = lambda *command: ninja_deps
        return tree

    def complaints_about(self, *dependencies):
        lines = "".join(f"    {dep}\n" for dep in (f"{self.root}/server/round/round.cc", *dependencies))
        return checks.check_dependency_files(self.tree("server/round.cc.o: #deps (VALID)\n" + lines))[0]

    def test_dependency_files(self):
        self.assertEqual(self.complaints_about(f"{self.root}/common/method/signs/votes.h", "/usr/include/c++/12/vector"), [])
        self.assertEqual(len(self.complaints_about(f"{self.root}/worker/model/model.h")), 1)
        self.assertEqual(len(self.complaints_about("torch-include/ATen/core/Tensor.h")), 1)
        self.assertEqual(len(self.complaints_about("/usr/include/grpcpp/server.h")), 1)
        self.assertEqual(self.complaints_about("proto/generated/distro/v1/run.pb.h"), [])

    def test_message_seen_by_a_kernel_is_found(self):
        self.write("build/compile_commands.json",
                   f'[{{"file": "{self.root}/kernels/cpu/deltas_compress.cc", "command": "c++ -o kernels/deltas.cc.o -c deltas.cc"}}]')
        deps = f"kernels/deltas.cc.o: #deps (VALID)\n    {self.root}/common/method/deltas/caps.h\n    proto/generated/distro/v1/run.pb.h\n"
        self.assertEqual(len(checks.check_dependency_files(self.tree(deps))[0]), 1)

    def test_tests_own_what_they_compile(self):
        obj = "tests/kernels/CMakeFiles/emulation.dir/apply.cu.o"
        for folder, complaints in (("", 0), ("kernels/", 1)):
            self.write("build/compile_commands.json",
                       f'[{{"file": "{self.root}/kernels/cuda/signs_apply.cu", "command": "c++ -o {folder + obj} -c apply.cu"}}]')
            deps = f"{folder + obj}: #deps (VALID)\n    {self.root}/tests/kernels/builtins.h\n"
            self.assertEqual(len(checks.check_dependency_files(self.tree(deps))[0]), complaints)

    def test_links_of_a_program_that_is_put_elsewhere(self):
        self.write("build/compile_commands.json",
                   f'[{{"file": "{self.root}/server/main.cc", "command": "c++ -o server/CMakeFiles/prog.dir/main.cc.o"}}]')
        self.write("build/bin/prog", "")
        tree = self.tree()
        answers = {"-C": "bin/prog: CXX_EXECUTABLE_LINKER__prog_None\n", "-d": "(NEEDED) Shared library: [libtorch.so]\n"}
        tree.run = lambda program, flag, *rest: answers[flag]
        self.assertEqual(checks.check_links(tree)[0], ["bin/prog: server may not link torch (libtorch.so)"])

    def test_empty_build(self):
        self.assertEqual(len(checks.check_dependency_files(self.tree())[0]), 1)

    def test_text_of_a_header_that_nothing_compiles(self):
        self.assertEqual(checks.check_text(self.tree())[0], [])
        self.write("server/round/unused.h", '#include "worker/train/trainer.h"\n')
        self.assertEqual(len(checks.check_text(self.tree())[0]), 1)

    def test_source_without_a_target(self):
        self.assertEqual(checks.check_registration(self.tree())[0], [])
        self.write("tests/server/round/forgotten_test.cc", "")
        self.write("tests/fuzz/forgotten_fuzz.cc", "")
        self.assertEqual(len(checks.check_registration(self.tree())[0]), 2)
        self.write("tests/fuzz/CMakeLists.txt", "distro_fuzz_target(NAME forgotten_fuzz SRCS forgotten_fuzz.cc)\n")
        self.assertEqual(len(checks.check_registration(self.tree())[0]), 1)

    def test_sources_of_the_cuda_preset_are_registered_by_name(self):
        for source in ("kernels/cuda/a.cu", "kernels/cuda/b.cc", "worker/fsdp/nccl_c.cc"):
            self.write(source, "")
        self.assertEqual(len(checks.check_registration(self.tree())[0]), 3)
        self.write("kernels/cuda/CMakeLists.txt", "distro_library(NAME kernels_cuda SRCS a.cu b.cc)\n")
        self.assertEqual(len(checks.check_registration(self.tree())[0]), 1)


class DefinitionsTest(unittest.TestCase):
    def names(self, text):
        return [f"{namespace}::{name}" for namespace, name in checks.definitions.definitions(text)]

    def test_types_aliases_and_constants_of_a_namespace_are_found(self):
        self.assertEqual(
            self.names(
                """#pragma once
                namespace distro::server {
                class Forward;  // class Comment {
                class [[nodiscard]] A final : public B { struct Inner { int i; }; };
                struct C {};
                enum class D : int { kOne, kTwo };
                using E = std::map<int, C>;
                inline constexpr std::array<int, 2> kF = {1, 2};
                template <typename T> class G { };
                struct C Make(struct C c) { const int kLocal = 1; struct Local {}; return c; }
                }  // namespace distro::server"""
            ),
            [f"distro::server::{name}" for name in ("A", "C", "D", "E", "kF", "G")],
        )

    def test_unnamed_namespaces_and_text_are_left_alone(self):
        self.assertEqual(self.names('namespace a { namespace { struct B {}; } const char* s = "struct C {"; }'), [])

    def test_name_defined_twice_is_found(self):
        block = "namespace distro { struct BlockRange { int first; }; }"
        self.assertEqual(checks.judge_definitions({"a.h": block, "b.h": block.replace("distro", "distro::server")}), [])
        complaints = checks.judge_definitions({"a.h": block, "b.h": block})
        self.assertEqual(len(complaints), 1)
        self.assertIn("distro::BlockRange: is defined in a.h and b.h", complaints[0])


if __name__ == "__main__":
    unittest.main()
