//! The loop: messages in, answers and diagnostics out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::Notification as _;
use lsp_types::request::Request as _;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CompletionOptions,
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
    DidChangeWatchedFilesRegistrationOptions, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, FileSystemWatcher, GlobPattern,
    HoverProviderCapability, InitializeParams, InitializeResult, OneOf, PositionEncodingKind,
    PublishDiagnosticsParams, Registration, RegistrationParams, RenameOptions, SaveOptions,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, Uri, WorkDoneProgressOptions,
    notification, request,
};
use rlhf_lang::source::Encoding;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::Answer;
use crate::session::{Session, encoding};
use crate::{Failure, Options, paths};

/// Serves one editor over a connection until it says goodbye.
pub fn run(connection: &Connection, options: &Options) -> Result<(), Failure> {
    let (id, params) = connection.initialize_start()?;
    let params: InitializeParams = serde_json::from_value(params)?;
    let encoding = encoding(&params);
    let result = InitializeResult {
        capabilities: capabilities(encoding),
        server_info: Some(ServerInfo {
            name: "rlhf".into(),
            version: Some(env!("CARGO_PKG_VERSION").into()),
        }),
    };
    connection.initialize_finish(id, serde_json::to_value(result)?)?;
    if can_watch(&params) {
        send(connection, Message::Request(watch()?));
    }
    let mut session = Session::new(options, encoding);
    loop {
        // Diagnostics wait until the editor pauses.
        let message = match session.texts.is_unsent() {
            true => match connection.receiver.try_recv() {
                Ok(message) => message,
                Err(_) => {
                    publish(connection, &mut session)?;
                    continue;
                }
            },
            false => match connection.receiver.recv() {
                Ok(message) => message,
                // The editor went away without a word.
                Err(_) => return Ok(()),
            },
        };
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request)? {
                    return Ok(());
                }
                let response = guarded(request, &mut session);
                send(connection, Message::Response(response));
            }
            Message::Notification(n) if n.method == notification::Exit::METHOD => return Ok(()),
            Message::Notification(n) => notified(connection, n, &mut session)?,
            Message::Response(_) => {}
        }
    }
}

/// An editor that has gone needs no message.
fn send(connection: &Connection, message: Message) {
    let _ = connection.sender.send(message);
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(
                    SaveOptions::default(),
                )),
                ..TextDocumentSyncOptions::default()
            },
        )),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        inlay_hint_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([".", "(", "[", "\""].map(String::from).into()),
            ..CompletionOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
            ..CodeActionOptions::default()
        })),
        ..ServerCapabilities::default()
    }
}

fn can_watch(params: &InitializeParams) -> bool {
    let workspace = params.capabilities.workspace.as_ref();
    let watched = workspace.and_then(|w| w.did_change_watched_files.as_ref());
    watched.and_then(|w| w.dynamic_registration) == Some(true)
}

/// Asks the editor to say when a library changes on disk.
fn watch() -> Result<Request, Failure> {
    let options = DidChangeWatchedFilesRegistrationOptions {
        watchers: vec![FileSystemWatcher {
            glob_pattern: GlobPattern::String("**/*.rlhf".into()),
            kind: None,
        }],
    };
    let params = RegistrationParams {
        registrations: vec![Registration {
            id: "libraries".into(),
            method: notification::DidChangeWatchedFiles::METHOD.into(),
            register_options: Some(serde_json::to_value(options)?),
        }],
    };
    Ok(Request {
        id: RequestId::from("libraries".to_string()),
        method: request::RegisterCapability::METHOD.into(),
        params: serde_json::to_value(params)?,
    })
}

fn publish(connection: &Connection, session: &mut Session) -> Result<(), Failure> {
    for uri in session.texts.unsent() {
        let compiled = catch_unwind(AssertUnwindSafe(|| session.texts.compiled(&uri).is_some()));
        let text = match compiled {
            Ok(true) => session.texts.get(&uri),
            _ => None,
        };
        if let Some(text) = text {
            let params = session.diagnostics(text);
            tell::<notification::PublishDiagnostics>(connection, params)?;
        }
    }
    Ok(())
}

fn tell<N: lsp_types::notification::Notification>(
    connection: &Connection,
    params: N::Params,
) -> Result<(), Failure>
where
    N::Params: Serialize,
{
    let notification = Notification {
        method: N::METHOD.into(),
        params: serde_json::to_value(params)?,
    };
    send(connection, Message::Notification(notification));
    Ok(())
}

/// One request's answer. A bug ends the request, not the session.
fn guarded(request: Request, session: &mut Session) -> Response {
    let (id, method) = (request.id.clone(), request.method.clone());
    catch_unwind(AssertUnwindSafe(|| answer(request, session))).unwrap_or_else(|_| {
        let message =
            format!("bug in rlhf: `{method}` failed; please report it with the text that is open");
        Response::new_err(id, ErrorCode::InternalError as i32, message)
    })
}

fn answer(request: Request, session: &mut Session) -> Response {
    match request.method.as_str() {
        request::HoverRequest::METHOD => with(request, |p| session.hover(p)),
        request::InlayHintRequest::METHOD => with(request, |p| session.hints(p)),
        request::Completion::METHOD => with(request, |p| session.complete(p)),
        request::GotoDefinition::METHOD => with(request, |p| session.definition(p)),
        request::References::METHOD => with(request, |p| session.references(p)),
        request::PrepareRenameRequest::METHOD => with(request, |p| session.renamable(p)),
        request::Rename::METHOD => with(request, |p| session.rename(p)),
        request::Formatting::METHOD => with(request, |p| session.format(p)),
        request::DocumentSymbolRequest::METHOD => with(request, |p| session.symbols(p)),
        request::CodeActionRequest::METHOD => with(request, |p| session.actions(p)),
        unknown => {
            let message = format!("`{unknown}` is not answered by this server");
            Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message)
        }
    }
}

fn with<P: DeserializeOwned, R: Serialize>(
    request: Request,
    answer: impl FnOnce(P) -> Answer<R>,
) -> Response {
    let id = request.id;
    let params = match serde_json::from_value(request.params) {
        Ok(params) => params,
        Err(e) => {
            let message = format!("the parameters of `{}` cannot be read: {e}", request.method);
            return Response::new_err(id, ErrorCode::InvalidParams as i32, message);
        }
    };
    match answer(params) {
        Ok(result) => Response::new_ok(id, result),
        Err(reason) => Response::new_err(id, ErrorCode::RequestFailed as i32, reason),
    }
}

fn notified(
    connection: &Connection,
    n: Notification,
    session: &mut Session,
) -> Result<(), Failure> {
    match n.method.as_str() {
        notification::DidOpenTextDocument::METHOD => {
            if let Some(p) = read::<DidOpenTextDocumentParams>(n) {
                let d = p.text_document;
                session.texts.open(d.uri.clone(), d.version, d.text);
                examine(session, &d.uri);
            }
        }
        notification::DidChangeTextDocument::METHOD => {
            if let Some(p) = read::<DidChangeTextDocumentParams>(n) {
                let (uri, version) = (p.text_document.uri, p.text_document.version);
                let encoding = session.encoding;
                session
                    .texts
                    .change(&uri, version, p.content_changes, encoding);
            }
        }
        notification::DidSaveTextDocument::METHOD => {
            if let Some(p) = read::<DidSaveTextDocumentParams>(n) {
                examine(session, &p.text_document.uri);
            }
        }
        notification::DidCloseTextDocument::METHOD => {
            if let Some(p) = read::<DidCloseTextDocumentParams>(n) {
                let uri = p.text_document.uri;
                session.texts.close(&uri);
                let nothing = PublishDiagnosticsParams::new(uri, vec![], None);
                tell::<notification::PublishDiagnostics>(connection, nothing)?;
            }
        }
        notification::DidChangeWatchedFiles::METHOD => {
            if let Some(p) = read::<DidChangeWatchedFilesParams>(n) {
                for change in p.changes {
                    session
                        .texts
                        .changed(paths::path_of(&change.uri).as_deref());
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// A notification has no answer, so one that cannot be read is passed over.
fn read<P: DeserializeOwned>(n: Notification) -> Option<P> {
    serde_json::from_value(n.params).ok()
}

fn examine(session: &mut Session, uri: &Uri) {
    if let Some(extra) = session.options.extra {
        // A bug in it costs its own findings only.
        let _ = catch_unwind(AssertUnwindSafe(|| session.texts.examine(uri, extra)));
    }
}
