// Starts `rlhf lsp` and hands it to the editor.
const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

function executable() {
  const path = vscode.workspace.getConfiguration("rlhf").get("path");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return path.replaceAll("${workspaceFolder}", folder);
}

async function start() {
  const command = executable();
  const run = { command, args: ["lsp"], transport: TransportKind.stdio };
  client = new LanguageClient(
    "rlhf",
    "rlhf",
    { run, debug: run },
    { documentSelector: [{ language: "rlhf" }] },
  );
  try {
    await client.start();
  } catch (error) {
    const choice = await vscode.window.showErrorMessage(
      `\`${command} lsp\` does not start: ${error.message}`,
      "Open the setting",
    );
    if (choice) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "rlhf.path");
    }
  }
}

async function stop() {
  const stopping = client;
  client = undefined;
  // A server that never started has nothing to stop.
  await stopping?.stop().catch(() => undefined);
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("rlhf.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("rlhf.path")) {
        return restart();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
