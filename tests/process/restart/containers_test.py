"""The files of tools/package/container, where no container runs: they agree with the tree, and what
they start works. LEASEHOLD_BIN_DIR: the folder of the programs."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tools/package/container"
MODEL = ROOT / "tools/models/leasehold-stories-q8_0.gguf"
INSTALLED_MODEL = "/usr/share/leasehold/leasehold-stories-q8_0.gguf"
BIN = pathlib.Path(os.environ["LEASEHOLD_BIN_DIR"])
# debian:bookworm-slim has these.
IN_BASE_IMAGE = {"libc6", "libgcc-s1", "libstdc++6"}


def instructions():
    """(name, words) of each instruction of the Containerfile, in order."""
    text = re.sub(r"^#.*\n", "", (FOLDER / "Containerfile").read_text(), flags=re.M).replace("\\\n", " ")
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in text.splitlines() if line]


def stages():
    """The instructions of each image that the Containerfile makes."""
    images = []
    for name, rest in instructions():
        if name == "FROM":
            images.append([])
        images[-1].append((name, rest))
    return images


def wait_for(condition):
    for _ in range(600):
        if (found := condition()) is not None:
            return found
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError("the condition did not come true")


class ContainerfileTest(unittest.TestCase):
    def test_what_it_copies_exists_and_its_user_has_no_rights(self):
        for name, rest in instructions():
            sources = [word for word in shlex.split(rest)[:-1] if not word.startswith("--")]
            if name == "COPY" and not rest.startswith("--from"):
                for source in sources:
                    self.assertTrue((ROOT / source).exists(), source)
        last = {name: rest for name, rest in instructions()}
        self.assertGreater(int(last["USER"].split(":")[0]), 0)
        [entry] = json.loads(last["ENTRYPOINT"])
        self.assertTrue(os.access(FOLDER / entry, os.X_OK))

    def assert_has_libraries(self, stage, programs):
        installed = {word for name, rest in stage if name == "RUN" for word in rest.split()}
        needed = set()
        for program in programs:
            headers = subprocess.run(["objdump", "-p", BIN / program], capture_output=True, text=True, check=True)
            needed |= set(re.findall(r"NEEDED +(\S+)", headers.stdout))
        owners = subprocess.run(["dpkg", "-S", *(f"*-linux-gnu/{library}" for library in needed)], capture_output=True, text=True)
        packages = {line.split(":")[0] for line in owners.stdout.splitlines()}
        self.assertIn("libsodium23", packages)
        runtime = {package for package in packages - IN_BASE_IMAGE if not package.endswith(("-dev", "-cross"))}
        self.assertEqual(sorted(runtime - installed), [])

    def test_each_image_has_every_library_that_a_program_needs(self):
        _, gateway, whole = stages()
        self.assert_has_libraries(gateway, ["leasehold-gateway"])
        self.assert_has_libraries(whole, ["leasehold-broker", "leasehold-worker", "leasehold-tenant",
                                          "leasehold-monitor", "leasehold-gateway", "leasehold-cell",
                                          "brokerctl"])

    def test_the_gateway_runs_without_rights_with_its_configuration(self):
        last = {name: rest for name, rest in stages()[1]}
        self.assertGreater(int(last["USER"].split(":")[0]), 0)
        [program] = json.loads(last["ENTRYPOINT"])
        self.assertIn(f"/usr/bin/{program} ", last["COPY"])
        option, path = json.loads(last["CMD"])
        self.assertEqual(path, "/etc/leasehold/gateway.toml")
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('hosts = ["https://gpu1:8443"]\n')
            file.flush()
            subprocess.run([BIN / program, option, file.name, "--check-config"], check=True, capture_output=True)


class AloneTest(unittest.TestCase):
    def alone(self, *arguments, **variables):
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "LEASEHOLD_MODEL": str(MODEL), **variables}
        return subprocess.run([FOLDER / "leasehold-alone", *arguments], env=environment, capture_output=True,
                              text=True, timeout=60, check=False)

    def test_a_prompt_gets_its_text(self):
        done = self.alone("--prompt", "Once upon a time", "--max-tokens", "20")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("little", done.stdout)

    def test_a_model_that_is_missing_or_wrong_is_named(self):
        self.assertIn("cannot read the model /none; mount it", self.alone("--prompt", "x", LEASEHOLD_MODEL="/none").stderr)
        wrong = self.alone("--prompt", "x", LEASEHOLD_MODEL="/etc/passwd")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("/etc/passwd: at byte 0", wrong.stderr)


class PodTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            import yaml
        except ImportError:
            raise unittest.SkipTest("python3-yaml is not installed") from None
        cls.pod = yaml.safe_load((FOLDER / "pod.yaml").read_text())
        cls.containers = {each["name"]: each for each in cls.pod["spec"]["containers"]}

    def test_its_containers_are_confined_and_mount_what_it_has(self):
        spec = self.pod["spec"]
        self.assertEqual((self.pod["apiVersion"], self.pod["kind"]), ("v1", "Pod"))
        self.assertTrue(spec["shareProcessNamespace"] and spec["securityContext"]["runAsNonRoot"])
        user = next(rest for name, rest in instructions() if name == "USER").split(":")[0]
        self.assertEqual(str(spec["securityContext"]["runAsUser"]), user)
        volumes = {volume["name"] for volume in spec["volumes"]}
        for container in [*spec["initContainers"], *self.containers.values()]:
            confined = container["securityContext"]
            self.assertFalse(confined["allowPrivilegeEscalation"])
            self.assertTrue(confined["readOnlyRootFilesystem"])
            self.assertEqual(confined["capabilities"], {"drop": ["ALL"]})
            self.assertIn("memory", container["resources"]["limits"])
            self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, volumes)

    def test_both_commands_run_and_answer_their_probes(self):
        for container in self.containers.values():
            program, *options = container["command"]
            model = f"--model={MODEL}"
            options = [model if option.startswith("--model") else option for option in options]
            if program == "leasehold-worker":  # the broker's folder of state is not here yet
                subprocess.run([BIN / program, *options, "--check-config"], check=True)
        with tempfile.TemporaryDirectory() as folder:
            # As a volume with fsGroup has it.
            for volume in ("run", "lib"):
                os.mkdir(f"{folder}/{volume}")
                os.chmod(f"{folder}/{volume}", 0o2777)
            self.run_in(folder)

    def run_in(self, folder):
        def here(words):
            moved = [word.replace("/run/leasehold", f"{folder}/run").replace("/var/lib/leasehold", f"{folder}/lib")
                     .replace(INSTALLED_MODEL, str(MODEL)).replace("0.0.0.0:8080", "127.0.0.1:0") for word in words]
            own = BIN / moved[0]
            return [own if own.exists() else moved[0], *moved[1:]]

        processes = []
        for container in self.pod["spec"]["initContainers"]:
            subprocess.run(here(container["command"]), check=True)
        try:
            for container in self.containers.values():
                with open(f"{folder}/{container['name']}.log", "wb") as log:
                    processes.append(subprocess.Popen(here(container["command"]), stdout=log, stderr=log))
            log = pathlib.Path(folder, "worker.log")
            address = wait_for(lambda: (re.findall(r"HTTP ready address=(\S+)", log.read_text()) or [None])[0])
            probe = self.containers["worker"]["readinessProbe"]["httpGet"]["path"]
            wait_for(lambda: urllib.request.urlopen(f"http://{address}{probe}").status == 200 or None)
            probe = self.containers["broker"]["readinessProbe"]["exec"]["command"]
            subprocess.run(here(probe), check=True, stdout=subprocess.DEVNULL)
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(60)


if __name__ == "__main__":
    unittest.main()
