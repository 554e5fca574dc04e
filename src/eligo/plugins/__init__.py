"""The order inside engines that people use already: one module for each, which nothing else imports."""
