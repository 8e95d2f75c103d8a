// llama.cpp's tokenizer (node-llama-cpp, in .peers), driven like text_tool: a JSON request per line in, an answer per line out.
//   {"load": "model.gguf"}   {"text": "…", "special": true}   {"detokenize": [1, 2], "special": false}   {"ends": true}
// usage: node llama_tokens.mjs PEERS      PEERS: the folder with node_modules
import readline from "node:readline";
import path from "node:path";
import {pathToFileURL} from "node:url";

const entry = path.join(path.resolve(process.argv[2]), "node_modules/node-llama-cpp/dist/index.js");
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(entry).href);
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.disabled, progressLogs: false});
let model = null;

async function answer(request) {
    if (request.load != null) {
        if (model != null) await model.dispose();
        model = await llama.loadModel({modelPath: request.load, vocabOnly: true});
        return {size: model.fileInfo.metadata.tokenizer.ggml.tokens.length};
    }
    if (request.detokenize != null) return {text: model.detokenize(request.detokenize, request.special)};
    if (request.ends) {
        const count = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
        return {ids: Array.from({length: count}, (_, id) => id).filter((id) => model.isEogToken(id))};
    }
    return {ids: model.tokenize(request.text, request.special)};
}

for await (const line of readline.createInterface({input: process.stdin})) {
    let out;
    try {
        out = await answer(JSON.parse(line));
    } catch (error) {
        out = {error: String(error)};
    }
    process.stdout.write(JSON.stringify(out) + "\n");
}
process.exit(0);
