// llama.cpp's answers, through npm's node-llama-cpp: reads {package, jobs: [{model, context, prompts: [[ids]], steps, text,
// cache, flash, threads, score}]} from stdin and writes a list with an entry per job: {logits, greedy, ids, surprises} or {error}.
//   logits  by prompt, by token of it: the scores of the next one ("all": true), or those behind the last token alone
//   greedy  by prompt, `steps` tokens of the likeliest continuation
//   ids     by text of `text`
//   surprises  by prompt, instead of its logits: -ln p of each token behind number `score`, behind those before it
// `cache` is the type of keys and values (F32, F16, Q8_0); with `flash` attention they are not unpacked, which packed values
// need.
import {readFileSync} from "node:fs";
import {pathToFileURL} from "node:url";
import {join} from "node:path";

const request = JSON.parse(readFileSync(0, "utf8"));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(join(request.package, "dist", "index.js")).href);
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, skipDownload: true});

function scores(next) {
  const out = [];
  for (const [token, score] of next.logits) out[token] = score;
  return out;
}

function surprise(next, token) {
  let most = -Infinity, sum = 0;
  for (const score of next.logits.values()) most = Math.max(most, score);
  for (const score of next.logits.values()) sum += Math.exp(score - most);
  return most + Math.log(sum) - next.logits.get(token);
}

async function run(job) {
  const model = await llama.loadModel({modelPath: job.model, gpuLayers: 0, useMmap: true});
  const type = job.cache ?? "F32";
  const context = await model.createContext({
    contextSize: job.context, batchSize: job.context, threads: job.threads ?? 1, flashAttention: job.flash ?? false, swaFullCache: true,
    experimentalKvCacheKeyType: type, experimentalKvCacheValueType: type
  });
  const sequence = context.getSequence();
  const result = {logits: [], greedy: [], ids: [], surprises: []};
  for (const text of job.text ?? []) result.ids.push(model.tokenize(text));
  for (const prompt of job.prompts ?? []) {
    await sequence.clearHistory();
    const asked = {generateNext: {logits: true, options: {temperature: 0}}};
    const output = await sequence.controlledEvaluate(
      prompt.map((token, i) => job.all || i >= (job.score ?? prompt.length) || i === prompt.length - 1 ? [token, asked] : token));
    if (job.score != null) {
      result.surprises.push(prompt.slice(job.score + 1).map((token, i) => surprise(output[job.score + i].next, token)));
      continue;
    }
    result.logits.push(output.filter((o) => o?.next?.logits != null).map((o) => scores(o.next)));
    const greedy = [];
    let next = output[prompt.length - 1].next;
    for (let i = 0; i < (job.steps ?? 0); ++i) {
      const likely = scores(next);
      let best = 0;
      for (let t = 1; t < likely.length; ++t) if (likely[t] > likely[best]) best = t;
      greedy.push(best);
      if (i + 1 < job.steps) next = (await sequence.controlledEvaluate([[best, asked]]))[0].next;
    }
    result.greedy.push(greedy);
  }
  await context.dispose();
  await model.dispose();
  return result;
}

const results = [];
for (const job of request.jobs) {
  try {
    results.push(await run(job));
  } catch (error) {
    results.push({error: String(error?.message ?? error)});
  }
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
