// Package compose has projects of Compose converted to pods, by the program podstead-compose. Only commands do: the daemon knows nothing of
// Compose.
//
// The program is another one because the library of Compose takes 2 MB, and a third of the time in which podstead starts, and because the
// files of a project may be hostile: it runs in a process with limits.
package compose
