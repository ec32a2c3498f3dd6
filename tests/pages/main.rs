//! The pages for people: README, the book in `docs/`, and the other documents at the root.
//!
//! | file | tests |
//! |---|---|
//! | `page` | nothing: it finds the pages and reads their blocks, headings and links |
//! | `book` | the size of README, the table of contents, every internal link, every page that code names |
//! | `reference` | every command, flag, job-file key and operator of graphs has its line |
//! | `runs` | the commands that the pages show are run |
//! | `examples` | every file below `examples/` is tried, at a small size |
//! | `results` | pages that scripts write are what these make of the kept results |
//! | `promises` | each promise of `docs/security.md` has a test that there is |

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test ends at what it did not expect"
)]

mod book;
mod examples;
mod page;
mod promises;
mod reference;
mod results;
mod runs;
