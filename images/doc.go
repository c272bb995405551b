// Package images holds david's image and those its tests in a cluster run; the module is one of its own, so
// that the libraries for images stay out of david's.
//
// The command david builds david's image, the command testservers the others. Both write OCI archives, need
// neither Docker nor root, and give the same bytes for the same packages and programs. internal/debian
// fetches Debian's packages, internal/root puts their files together, internal/oci makes an archive of them.
// entrypoint and pause run inside images.
package images
