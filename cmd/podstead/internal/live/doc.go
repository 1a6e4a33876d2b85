// Package live has what the page of podstead ui and the screen of podstead tui show of pods while they change: the list, the explanation
// with last exits and events, and merged logs. It is a client of the daemon like a command. It keeps what one screen shows, sends requests
// only while a caller waits for them, continues over restarts of the daemon, and starts none. Its texts can have hidden characters, except
// log lines and last exits.
package live
