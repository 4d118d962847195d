//! The .ir text form: lexer, parser, printer, diagnostics.
