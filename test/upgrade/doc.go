// Package upgrade tests that pods keep running when Podstead is replaced by its next version and by its previous version again. The
// tests build the previous version from the history of the repository.
package upgrade
