//! The project's tests about itself and about whole runs; there is no library here.
