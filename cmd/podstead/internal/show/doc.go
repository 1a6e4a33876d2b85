// Package show turns what the daemon reports about pods into what a person or a script reads: the page of podstead describe, the tables of
// podstead top, and expressions on a pod as kubectl has them (JSONPath, templates, columns, the order of a list, the conditions of wait).
// An expression sees a pod as `get -o json` prints it. The package requests nothing from the daemon.
package show
