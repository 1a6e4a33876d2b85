// Package server serves the API of package api for a supervisor. It converts what the supervisor and the runtime know into the types of the
// API, limits what each user may ask for at the same time, and removes secrets from texts. It never decides about pods, and reaches the
// runtime only through the interfaces of [Options].
package server
