// Package converter converts a project of Compose to pods. It is linked into podstead-compose only.
//
// The library of Compose (compose-go) reads the files: merges, includes, extends, profiles, variables and env files are its own. This
// package decides what each key of the result becomes. [Keys] has a row for each of them: taken, dropped with a warning, lost, which is an
// error unless the user allows it, or refused. Nothing is omitted silently.
package converter
